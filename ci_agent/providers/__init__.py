"""One module for each wire API, and the table that names them."""
