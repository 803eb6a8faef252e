"""The probe: tests which penalties a server applies, to which tokens, and what the server does by default."""
