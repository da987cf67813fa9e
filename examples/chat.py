"""A chat without a server: every participant is a node, and what is said goes from node to node.

    python examples/chat.py ann --listen 127.0.0.1:7070
    python examples/chat.py bob --join 127.0.0.1:7070

What is typed is said to the room; what others say is printed. Ctrl-D, or an empty line, leaves in good order.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import omen


async def listen(broker: omen.Broker) -> None:
    async for item in broker.messages():
        if isinstance(item, omen.Gap):
            print(f"-- {item.last - item.first + 1} lines are missing --", flush=True)
        elif item.node != broker.node:
            print(f"{item.publisher or 'unknown'}: {item.payload.decode()}", flush=True)


async def chat(name: str, room: str, where: str, seeds: tuple[str, ...]) -> None:
    config = omen.NodeConfig(name=name, listen=where, join=seeds, topics=(room,))
    async with omen.Broker(config) as broker:
        print(f"-- {name} is in {room}; others can join through {broker.address} --", flush=True)
        listening = asyncio.ensure_future(listen(broker))
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            await broker.publish(room, line.encode())
        listening.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--room", default="tea")
    parser.add_argument("--listen", default="127.0.0.1:0", help="the address to listen at (any free port)")
    parser.add_argument("--join", action="append", default=[], help="the address of a member that is there")
    asked = parser.parse_args()
    asyncio.run(chat(asked.name, asked.room, asked.listen, tuple(asked.join)))


if __name__ == "__main__":
    main()
