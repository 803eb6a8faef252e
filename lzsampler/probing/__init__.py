"""A probe of servers: which penalties they apply, to what, and what they do when nothing is asked."""
