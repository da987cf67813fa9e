"""An attack on honest nodes, and what must hold of them whatever it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .besieged import Siege

GROWTH_MB = 48.0
BEFORE_S = 0.7
PATIENCE_S = 240.0
Attack = Callable[[], Awaitable[None]]


def withstand(siege: Siege, attack: Attack, growth_mb: float = GROWTH_MB) -> dict[str, int]:
    """Attack; what the honest nodes say afterwards next to before. Returns what was counted meanwhile."""

    async def go() -> tuple[dict[str, Any], dict[str, Any]]:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, siege.mark)
        await asyncio.sleep(BEFORE_S)
        before = await loop.run_in_executor(None, siege.mark)
        async with asyncio.timeout(PATIENCE_S):
            await attack()
        return before, await loop.run_in_executor(None, siege.mark)

    before, after = asyncio.run(go())
    for when, mark in (("before", before), ("during", after)):
        print(
            f"{when}: {mark['deliveries']} deliveries, p50 {mark['p50_ms']:.1f} ms, p99 {mark['p99_ms']:.1f} ms,"
            f" {mark['memory_mb']:.0f} MB, {mark['open']} connections"
        )
    counted = {
        name: value - before[part].get(name, 0)
        for part in ("refused", "counts")
        for name, value in after[part].items()
        if value > before[part].get(name, 0)
    }
    print(f"counted: {counted}")
    assert siege.process.poll() is None
    assert after["up"]
    assert before["deliveries"] and after["deliveries"]
    assert (after["lacking"], after["disorder"]) == (0, 0)
    assert after["memory_mb"] < before["memory_mb"] + growth_mb
    assert not counted.get("core_errors")
    return counted


def refusals(counted: dict[str, int], *reasons: str) -> int:
    return sum(counted.get(reason, 0) for reason in (*reasons, "banned", "connection_limit"))
