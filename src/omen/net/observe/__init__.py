"""How a node is observed from outside.

- `logs`: an event name and key=value fields per line, as text or JSON; `event_log`: what a core notifies of.
- `counters`: what the parts of a node count; `latency`: how long deliveries take.
- `metrics`: how Prometheus reads it; `node_metrics`, `front_door` and `process`: the page of a node.
- `pages`: health and topology, as JSON.
- `http_server` serves /metrics, /livez, /readyz, /healthz and /topology; `http_client` asks other nodes for them.
"""
