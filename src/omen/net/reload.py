"""Settings that are read again while a node runs, as SIGHUP has `omen node` do.

Taken over: topics, limits, the log, seeds, security and access rules. All else is what the node is to others, or what
its core was built with: a change of that is logged, and comes into force at the next start.
"""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from omen.errors import InvalidInput, OmenError
from omen.net.observe.logs import write_log
from omen.net.security.access import Access
from omen.net.service import Service
from omen.net.settings import NodeConfig, read_node_config

if TYPE_CHECKING:
    from omen.net.broker import Broker

TAKEN_OVER = frozenset({"topics", "join", "join_file", "limits", "log", "log_level", "security", "access"})


class Reloaded(msgspec.Struct, frozen=True):
    """The settings that are in force now and were not before, and those that need a start for it."""

    changed: tuple[str, ...]
    after_restart: tuple[str, ...]


class SettingsFile(msgspec.Struct, frozen=True):
    """Where settings come from. `log_level`: instead of the one in the file."""

    path: str = ""
    log_level: str = ""

    def read(self) -> NodeConfig:
        config = read_node_config(self.path) if self.path else NodeConfig()
        return replace(config, log_level=self.log_level or config.log_level)

    def read_again(self, running: NodeConfig) -> NodeConfig:
        """A name that would be made up is that of the running node."""
        config = self.read()
        name = str(tomllib.loads(Path(self.path).read_text(encoding="utf-8")).get("name", ""))
        return replace(config, name=running.name) if not name or "*" in name else config


async def reload_settings(
    broker: Broker, config: NodeConfig, former: NodeConfig | None = None, started: NodeConfig | None = None
) -> Reloaded:
    """Go by these settings as far as a running node can.

    Nothing changes where it cannot be. Denied: its rules forbid its topics. InvalidInput: the keys are of no use.
    `former`: what they were before, where the node was started with others than stood in its file. `started`: those of
    them that it was started with, and goes by in all that is not taken over.
    """
    former = former or broker.config
    started = started or former
    if config.access:
        Access(config.access, broker.name).check_subscribe(config.topics)
    different = differences(former, config)
    changed = tuple(name for name in different if name.partition(".")[0] in TAKEN_OVER)
    await broker.renew_keys(config)
    if broker.admission.renewal_error:
        raise InvalidInput(broker.admission.renewal_error)
    kept = {name: getattr(broker.config, name) for name in NodeConfig.__dataclass_fields__ if name not in TAKEN_OVER}
    broker.config = replace(config, **kept)
    if former.limits != config.limits:
        broker.set_limits(config.limits)
    if (former.log, former.log_level) != (config.log, config.log_level):
        write_log(config.log, level=config.log_level)
    broker.set_seeds(config.join, config.join_file)
    await _follow_topics(broker, former, config)
    unlike = differences(started, config)
    after_restart = tuple(name for name in unlike if name.partition(".")[0] not in TAKEN_OVER)
    if after_restart:
        broker.log.warning("settings_need_restart", settings=",".join(after_restart))
    elif broker.health.after_restart:
        broker.log.info("restart_not_needed", settings=",".join(broker.health.after_restart))
    broker.health.after_restart = after_restart
    broker.log.info("settings_reloaded", changed=",".join(changed) or "none")
    return Reloaded(changed, after_restart)


async def _follow_topics(broker: Broker, former: NodeConfig, config: NodeConfig) -> None:
    """What the application itself subscribed to stays."""
    dropped = [topic for topic in former.topics if topic not in config.topics]
    await broker.unsubscribe(*dropped)
    try:
        await broker.subscribe(*config.topics, timeout=config.limits.join_timeout_s or None)
    except TimeoutError:
        broker.log.warning("subscription_slow", topics=",".join(config.topics))


def differences(one: Any, other: Any) -> list[str]:
    """The names of settings in which two differ; of a setting within a section, both: `limits.queue_bytes`."""
    found = []
    for name in _names(one):
        former, present = getattr(one, name), getattr(other, name)
        if former == present:
            continue
        inside = _names(former)
        found += [f"{name}.{within}" for within in differences(former, present)] if inside else [name]
    return found


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else ()


class Reloader:
    """Reads the settings again whenever it is asked to, one time after the other."""

    def __init__(self, broker: Broker, file: SettingsFile, service: Service) -> None:
        self._broker = broker
        self._file = file
        self._service = service
        self._started = self._read = file.read_again(broker.config) if file.path else broker.config
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """For a signal handler."""
        task = asyncio.ensure_future(self.reload())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def reload(self) -> None:
        """Without a file the keys alone are read again. What cannot be read is logged, and what was in force stays."""
        async with self._turn:
            self._service.reloading()
            outcome = "settings were read again"
            try:
                if self._file.path:
                    config = self._file.read_again(self._broker.config)
                    await reload_settings(self._broker, config, self._read, self._started)
                    self._read = config
                else:
                    await self._broker.renew_keys()
            except (OmenError, OSError) as error:
                outcome = f"settings could not be read again: {error}"
                self._broker.log.warning("reload_failed", cause=str(error))
            finally:
                self._service.reloaded(outcome)
