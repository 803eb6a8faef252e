"""A probe of servers: which penalties they apply, to which tokens, and what they do by default."""
