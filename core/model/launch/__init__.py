"""Before an attempt: launch preview, expected length, resume support, ramp rule, trials and learned habits."""
