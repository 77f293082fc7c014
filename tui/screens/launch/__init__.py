"""The launch screen: what can be started here, its plan and its checks."""
