"""Before an attempt: launch preview, expected length, forms of resuming, ramp rule, trials and learned habits."""
