"""The built-in tools, one module each, and the table that names them."""
