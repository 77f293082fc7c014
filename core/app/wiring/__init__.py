"""The only package that knows all packages of core: it builds a run's supervisor from them."""
