"""Protocol nodes over TCP: the event loop, connections, the broker that applications embed."""
