"""The accountants: each a theorem on composition, applied to events, one a file."""
