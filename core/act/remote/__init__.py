"""Another machine, reached by the installed OpenSSH."""
