"""The front door: MQTT clients connect to any node, and an MQTT topic is a topic of the overlay.

Who is where: `topics` knows names and filters, `codec` the packets of MQTT 5 and 3.1.1, `packets` what they mean,
`session` what a client is owed, `pace` how fast it reads, `wishes` which topics the node carries for its clients,
`shares` who gets what of shared subscriptions. `door` is the state machine of a whole node, without a socket or a
clock: packets and times go in, `outputs` come out; `deliveries`, `keeping` and `publishing` are its layers. `stored` is
what of a session is stored, `keeper` stores it and brings it back, `other_doors` knows which doors are there. `records`
are what nodes tell each other about topics, retained messages and clients. `listener` has the sockets (`client_link`,
`websocket`) and the broker below, on which `publisher` publishes; `opening` and `users` say who may come in. Import
from here only where the extra `mqtt` is installed.
"""
