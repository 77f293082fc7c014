"""The runs of other machines on this screen: the side that serves them, and the side that shows them."""
