"""The cost of remote vectors, compared with plain sockets and with other protocols."""
