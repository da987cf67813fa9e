"""Rules of a fleet are read strictly: an error names file and row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omen.errors import InvalidTable
from omen.interests import Interests
from omen.rules import FleetRules, PairRule
from omen.tables import RuleTables, find_rules, read_rules

INTERESTS = Interests.from_pairs([("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")])
NODES = "node,max_links,zone\na,3,north\nb,,north\nc,0,south\nd,2,\n"
LINKS = "u,v,rule,cost\nb,a,forbid,\nc,a,require,2.5\nb,d,keep,\nd,c,,7\n"
ZONES = "zone_u,zone_v,cost\nnorth,south,10\nnorth,north,1\n"


def write(folder: Path, **tables: str) -> RuleTables:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return RuleTables(**{name: folder / f"{name}.csv" for name in tables})


def read(folder: Path, **tables: str) -> FleetRules:
    return read_rules(write(folder, **tables), INTERESTS)


def test_all_tables_together(tmp_path):
    rules = read(tmp_path, nodes=NODES, links=LINKS, zone_costs=ZONES)
    assert [rules.cap_of(code) for code in range(4)] == [3, None, 0, 2]
    assert [rules.zone_names[zone] for zone in rules.zones] == ["north", "north", "south", ""]
    assert rules.held.links() == [("a", "c"), ("b", "d")]
    assert [u.tolist() for u in rules.pairs_of(PairRule.FORBID)] == [[0], [1]]
    assert rules.costs_of(rules.u * 0, rules.u * 0 + 2).tolist()[0] == 2.5
    assert rules.costs_of(INTERESTS.topic_nodes[1:2], INTERESTS.topic_nodes[2:3]).tolist() == [10.0]


@pytest.mark.parametrize("left_out", ["nodes", "links", "zone_costs"])
def test_any_subset_will_do(tmp_path, left_out):
    zones = ZONES if left_out != "nodes" else "zone_u,zone_v,cost\n"
    tables = {"nodes": NODES, "links": LINKS, "zone_costs": zones}
    del tables[left_out]
    assert not read(tmp_path, **tables).is_empty


def test_no_tables_are_no_rules(tmp_path):
    assert read_rules(RuleTables(), INTERESTS).is_empty
    assert read(tmp_path, nodes="node\na\nb\nc\nd\n").is_empty
    assert read(tmp_path, nodes="node,zone\na,n\nb,n\nc,s\nd,s\n", links="u,v,rule\n").is_empty


def test_parquet_with_nulls_is_read_as_csv_is(tmp_path):
    pq.write_table(
        pa.table({"u": ["b", "d"], "v": ["a", "c"], "rule": ["forbid", None], "cost": [None, 7.0]}), tmp_path / "l"
    )
    pq.write_table(
        pa.table({"node": list("abcd"), "max_links": [3.0, None, 0.0, 2.0], "zone": [1, 1, 2, None]}), tmp_path / "n"
    )
    pq.write_table(pa.table({"zone_u": [1], "zone_v": [2], "cost": [10]}), tmp_path / "z")
    rules = read_rules(RuleTables(tmp_path / "n", tmp_path / "l", tmp_path / "z"), INTERESTS)
    assert [rules.cap_of(code) for code in range(4)] == [3, None, 0, 2]
    assert rules.costs_of(rules.u, rules.v).tolist() == [1.0, 7.0]
    assert rules.zone_costs.max() == 10


def test_exact_duplicates_are_merged(tmp_path):
    rules = read(
        tmp_path, links="u,v,rule,cost\na,b,forbid,\nb,a,forbid,\nc,d,,2\nc,d,,2\n", nodes=NODES + "a,3,north\n"
    )
    assert rules.u.tolist() == [0, 2]


BAD = {
    "a self-link": ("links", "u,v,rule\na,b,forbid\nb,b,forbid\n", "row 2: node 'b' is linked to itself"),
    "an unknown node": ("links", "u,v,rule\na,e,forbid\n", "row 1: v 'e' is not a node of the workload"),
    "an unknown rule": ("links", "u,v,rule\na,b,forbidden\n", "row 1: rule 'forbidden' is not one of forbid, require"),
    "a bad cost": ("links", "u,v,cost\na,b,1\na,c,-1\n", "row 2: cost '-1' is not a number, 0 or more"),
    "an endless cost": ("links", "u,v,cost\na,b,inf\n", "row 1: cost 'inf' is not a number"),
    "a row that says nothing": ("links", "u,v,rule,cost\na,b,,\n", "row 1: says nothing"),
    "links without rule and cost": ("links", "u,v\na,b\n", "row 1: says nothing"),
    "a contradiction": ("links", "u,v,rule\na,b,require\nc,d,keep\nb,a,forbid\n", "row 3: the pair 'b', 'a' stands"),
    "two costs of one pair": ("links", "u,v,cost\na,b,1\nb,a,2\n", "row 2: the pair 'b', 'a' stands otherwise in"),
    "a missing end": ("links", "u,v,rule\na,,forbid\n", "row 1: no v"),
    "an unknown column": ("links", "u,v,rule,price\na,b,forbid,\n", "column 'price' is unknown"),
    "no column v": ("links", "u,rule\na,forbid\n", "has no column 'v'"),
    "an empty file": ("links", "", "is empty"),
    "too few fields": ("links", "u,v,rule\na,b\n", "row 1: fewer fields"),
    "a bad cap": ("nodes", "node,max_links\na,2\nb,-1\n", "row 2: max_links '-1' is not a whole number, 0 or more"),
    "half a link": ("nodes", "node,max_links\na,2.5\n", "row 1: max_links '2.5' is not a whole number"),
    "two caps": ("nodes", "node,max_links\na,2\na,3\n", "row 2: node 'a' stands otherwise in"),
    "a misspelt column": ("nodes", "node,max_link\na,2\n", "column 'max_link' is unknown: did you mean 'max_links'?"),
    "an unknown zone": ("zone_costs", "zone_u,zone_v,cost\nnorth,east,2\n", "row 1: no node is in zone 'east'"),
    "a zone without cost": ("zone_costs", "zone_u,zone_v,cost\nnorth,south,\n", "row 1: no cost"),
    "two costs of zones": (
        "zone_costs",
        "zone_u,zone_v,cost\nnorth,south,2\nsouth,north,3\n",
        "row 2: zones 'north', 'south' cost otherwise in",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_named_with_file_and_row(tmp_path, what):
    table, text, complaint = BAD[what]
    tables = {"nodes": NODES, "links": LINKS, "zone_costs": ZONES} | {table: text}
    if table == "nodes":
        del tables["zone_costs"]
    with pytest.raises(InvalidTable) as error:
        read(tmp_path, **tables)
    assert complaint in str(error.value)
    assert f"{table}.csv" in str(error.value)


def test_rules_are_found_in_a_workload_folder(tmp_path):
    (tmp_path / "interests.csv").write_text("node,topic\na,x\nb,x\n")
    write(tmp_path, nodes="node,max_links\na,1\nb,1\n", links="u,v,rule\na,b,require\n")
    found = find_rules(tmp_path)
    assert found == RuleTables(tmp_path / "nodes.csv", tmp_path / "links.csv", None)
    assert find_rules(tmp_path / "interests.csv") == RuleTables()
