"""Nodes as commands run them: in the foreground, until a signal or until they have done what they came for."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from omen.errors import MissingDependency
from omen.net.broker import Broker, NotHeld, Origin
from omen.net.errors import NameTaken
from omen.net.event_loop import run
from omen.net.inbox import Gap, Message
from omen.net.observe.logs import Log, flush_log, write_log
from omen.net.reload import Reloader, SettingsFile
from omen.net.security.access import Access
from omen.net.service import Service
from omen.net.settings import LIVE, NodeConfig
from omen.protocol.events import MILLISECOND

if TYPE_CHECKING:
    from omen.net.mqtt.listener import FrontDoor

PROMPT = 20 * MILLISECOND
LOADED_S = 10.0  # by then all code is loaded: it lives as long as the node, and collections need not look at it
UNREAD_PAUSE_S = 0.05
CHUNKS_AHEAD, CHUNK = 4, 65_536
NO_FILE = SettingsFile()
Consumer = Callable[[Message | Gap], bool]
"""Takes what arrives; whether it has had enough."""


def prepare_node(file: SettingsFile) -> NodeConfig:
    """Read the settings of the node that this process is to be, and write its log; deprecated settings stand in it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DeprecationWarning)
        config = file.read()
    write_log(config.log, level=config.log_level)
    for warning in found:
        Log(config.name).warning("deprecated", what=str(warning.message))
    return config


def stop_on_signals(stop: asyncio.Event, abandon: asyncio.Event) -> None:
    """SIGTERM and SIGINT ask a node to leave in good order, a second one or SIGQUIT to go at once."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        (abandon if stop.is_set() else stop).set()
        stop.set()

    def insist() -> None:
        abandon.set()
        stop.set()

    for number, react in ((signal.SIGTERM, ask), (signal.SIGINT, ask), (signal.SIGQUIT, insist)):
        loop.add_signal_handler(number, react)


async def _until_stopped(
    config: NodeConfig,
    origin: Origin | None,
    while_running: Callable[[Broker, asyncio.Event], Awaitable[None]],
    settings: SettingsFile,
    before_leaving: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """A broker from its start to its leaving; `while_running` may set the event to end it.

    NotHeld: it has left, and neighbours do not hold all that it had accepted.
    """
    stop, abandon = asyncio.Event(), asyncio.Event()
    stop_on_signals(stop, abandon)
    broker, service = Broker(config, origin), Service()
    reloader = Reloader(broker, settings, service)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.begin)
    starting = asyncio.ensure_future(broker.start())
    await _first(starting, stop)
    if not starting.done():
        starting.cancel()
        broker.log.warning("node_abandoned", cause="it was asked to stop before it had joined")
        await broker.abandon()
        return
    await starting
    service.ready(f"{broker.name} has joined")
    asyncio.get_running_loop().call_later(LOADED_S, gc.freeze)
    work = asyncio.ensure_future(while_running(broker, stop))
    try:
        await _first(work, stop)
        if work.done():
            await work
            await stop.wait()
        service.stopping()
        if not abandon.is_set():
            broker.log.info("node_leaving")
        if before_leaving is not None:
            await _unless(abandon, before_leaving)
    except BaseException:
        with suppress(NotHeld):
            await _leave(broker, abandon)
        raise
    else:
        await _leave(broker, abandon)
    finally:
        work.cancel()
        service.close()


async def _leave(broker: Broker, abandon: asyncio.Event) -> None:
    if not await _unless(abandon, broker.stop):
        broker.log.warning("node_abandoned", cause="it was asked to stop at once, by a second signal or SIGQUIT")
        await broker.abandon()


async def _unless(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> bool:
    """Whether work was done before the event was set; otherwise it is not begun, or ended."""
    if event.is_set():
        return False
    task = asyncio.ensure_future(work())
    await _first(task, event)
    if not task.done():
        task.cancel()
        return False
    await task
    return True


async def _first(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    """Until the task is done or the event set."""
    waiter = asyncio.ensure_future(event.wait())
    await asyncio.wait((task, waiter), return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()


async def open_front_door(broker: Broker) -> FrontDoor:
    """Listen for MQTT clients."""
    from omen.net.mqtt.opening import open_front_door

    return await open_front_door(broker)


def check_front_door(config: NodeConfig) -> None:
    """Before the node joins. MissingDependency: the codec is not installed; InvalidInput: settings do not allow it."""
    try:
        from omen.net.mqtt.opening import check_settings
    except ImportError:
        raise MissingDependency("MQTT needs mqtt5 and websockets: pip install 'omen-overlay[mqtt]'") from None
    check_settings(config)


def with_prompt_acknowledgements(config: NodeConfig) -> NodeConfig:
    """A client waits for its PUBACK until neighbours have said that they hold its message: they say so more often."""
    dissemination = config.protocol.dissemination
    if dissemination.announce_period != LIVE.dissemination.announce_period:
        return config
    prompt = replace(dissemination, announce_period=PROMPT)
    return replace(config, protocol=replace(config.protocol, dissemination=prompt))


def run_node(
    config: NodeConfig,
    when_up: Callable[[Broker], None],
    consume: Consumer | None = None,
    origin: Origin | None = None,
    settings: SettingsFile = NO_FILE,
) -> None:
    """Be a node until a signal comes; what arrives goes to `consume`, or nowhere. `settings`: the file of `config`."""
    front: list[FrontDoor] = []
    if config.has_front_door:
        check_front_door(config)
        config = with_prompt_acknowledgements(config)

    async def take(broker: Broker, stop: asyncio.Event) -> None:
        consume_all = consume
        if config.has_front_door:
            door = await open_front_door(broker)
            front.append(door)
            consume_all = door.consume
        when_up(broker)
        messages, is_enough = broker.messages(), False
        while not is_enough:
            try:
                item = await anext(messages)
            except StopAsyncIteration:
                break
            except NameTaken:
                continue  # it is logged; the node joins again when its name is free
            is_enough = consume_all is not None and consume_all(item)
        stop.set()

    async def shut() -> None:
        for door in front:
            await door.close()

    try:
        run(_until_stopped(config, origin, take, settings, shut))
    finally:
        flush_log()


def has_room(stream: TextIO) -> bool:
    """Whether a few lines can be written without waiting for a reader: the node's event loop would wait as well."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True  # in memory, or closed: writing fails at once
    return bool(select.select((), (descriptor,), (), 0)[1])


def follow(config: NodeConfig, topics: Sequence[str], replay: bool, consume: Consumer) -> None:
    """Join, subscribe, hand on what arrives until it is enough or a signal comes, leave.

    `consume` writes to the output. While no process reads that, the node goes on as a member, and its inbox fills.
    """

    async def take(broker: Broker, stop: asyncio.Event) -> None:
        await broker.subscribe(*topics, replay=replay)
        async for item in broker.messages():
            while not has_room(sys.stdout):
                await asyncio.sleep(UNREAD_PAUSE_S)
            if consume(item):
                break
        stop.set()

    run(_until_stopped(config, None, take, NO_FILE))


def run_beside(config: NodeConfig, beside: Callable[[Broker], Awaitable[None]]) -> None:
    """Be a node until a signal comes, and do something beside it meanwhile. What arrives goes nowhere."""

    async def work(broker: Broker, _: asyncio.Event) -> None:
        await beside(broker)

    run(_until_stopped(config, None, work, NO_FILE))


class Published(msgspec.Struct, frozen=True):
    """What became of publications: whether another node wants them, and whether neighbours held all of them."""

    sequences: list[int]
    wanted: bool
    held: bool


async def lines_of(descriptor: int) -> AsyncIterator[bytes]:
    """Lines as they come. A thread reads them that no exit waits for: another line may never come."""
    loop = asyncio.get_running_loop()
    read_ahead: asyncio.Queue[list[bytes]] = asyncio.Queue(CHUNKS_AHEAD)

    def hand_on(lines: list[bytes]) -> None:
        asyncio.run_coroutine_threadsafe(read_ahead.put(lines), loop).result()

    def read() -> None:
        rest = b""
        with suppress(OSError, RuntimeError, CancelledError):  # no input, or the event loop has ended
            while chunk := os.read(descriptor, CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                if whole:
                    hand_on(whole)
            if rest:
                hand_on([rest])
            hand_on([])

    threading.Thread(target=read, name="lines", daemon=True).start()
    while lines := await read_ahead.get():
        for line in lines:
            yield line


async def only(payload: bytes) -> AsyncIterator[bytes]:
    """One that is there already."""
    yield payload


def publish_once(
    config: NodeConfig, topic: str, payloads: Callable[[], AsyncIterator[bytes]], patience_s: float
) -> Published:
    """Join, publish, leave once the neighbours hold it or patience ends; at once where no other node wants the topic.

    SIGTERM ends it as Ctrl-C does: the node leaves in good order, and KeyboardInterrupt is raised.
    """

    async def publish() -> Published:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        may_listen = not config.access or Access(config.access, config.name).may_subscribe(config.name, topic)
        topics = (topic,) if may_listen else ()
        published = Published([], False, False)
        with suppress(NotHeld):  # what became of them is said by what is returned
            async with Broker(replace(config, topics=topics)) as broker:
                broker.is_brief = True
                if not may_listen:
                    await broker.carry(topic)
                sequences = [await broker.publish(topic, payload) async for payload in payloads()]
                wanted = broker.has_neighbours(topic)
                published = Published(sequences, wanted, False)
                held = not sequences or (wanted and await broker.wait_held(topic, sequences[-1], patience_s))
                published = Published(sequences, wanted, held)
        return published

    try:
        return run(publish())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error
