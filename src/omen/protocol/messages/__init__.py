"""Everything on the wire.

    base            what messages are made of: references, digests, descriptors, events; bounds of their fields
    overlay         membership (tags 1 to 9, 33 to 40), links (10 to 13), repairs (20 to 32, 50 to 56),
                    audit (60 to 67), ways round a node (70 to 72)
    records         stored records (80 to 85)
    publications    publications as they are forwarded, and what neighbours say to each other about them
    wire            one byte for the kind of frame, then a publication as it is, or a msgpack body

A message is a frozen msgspec struct, sent as an array behind its tag. Tags never change their meaning; a message grows
by fields at its end that have defaults. Types and bounds are checked where bytes become a message; what no type can say
is checked by `protocol.validation`.
"""
