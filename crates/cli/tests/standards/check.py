"""Reads an export with the standard's own library.

usage: check.py FORMAT FILE…

Prints nothing and exits with 0 if the export is valid. For some formats it prints facts about the
content as JSON, which the test compares with the output of `backstory`. Needs no network.
"""

import importlib.util
import json
import pathlib
import re
import sys


def prov(path: str, form: str):
    from prov.model import ProvDocument

    return ProvDocument.deserialize(content=pathlib.Path(path).read_text(), format=form)


def check_prov(as_json: str, as_n: str, file: str) -> None:
    """Both forms say the same; prints every entity's path that leads to `file`."""
    document = prov(as_json, "json")
    assert document == prov(as_n, "provn"), "PROV-JSON and PROV-N differ"
    backwards: dict[str, set[str]] = {}
    ends = {
        "Usage": ("prov:activity", "prov:entity"),
        "Generation": ("prov:entity", "prov:activity"),
        "Derivation": ("prov:generatedEntity", "prov:usedEntity"),
        "Communication": ("prov:informed", "prov:informant"),
    }
    paths, start = {}, []
    for record in document.get_records():
        sort = record.get_type().localpart
        attributes = {str(name): value for name, value in record.attributes}
        if sort == "Entity":
            paths[str(record.identifier)] = attributes["prov:label"]
            if attributes["prov:label"] == file:
                start.append(str(record.identifier))
        if sort in ends:
            later, earlier = ends[sort]
            backwards.setdefault(str(attributes[later]), set()).add(str(attributes[earlier]))
        if sort in ("Usage", "Generation"):
            assert attributes["backstory:certainty"] in ("seen", "possible")
    known, waiting = set(start), start
    while waiting:
        for earlier in backwards.get(waiting.pop(), ()):
            if earlier not in known:
                known.add(earlier)
                waiting.append(earlier)
    print(json.dumps(sorted({paths[node] for node in known if node in paths})))


def openlineage_schemas(events: list, spec: pathlib.Path) -> None:
    """Checks every event against the standard's schema, and every facet against its own schema.

    A facet's schema may be of another minor version. A facet without a schema is not checked.
    """
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry, Resource

    files = [spec / "OpenLineage.json", *sorted((spec / "facets").glob("*.json"))]
    schemas = {schema["$id"]: schema for schema in (json.loads(file.read_text()) for file in files)}
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas.items())
    formats = FormatChecker()
    assert {"uuid", "date-time", "uri"} <= set(formats.checkers), "formats are not checked"

    def validate(given: dict, reference: str) -> None:
        validator = Draft202012Validator({"$ref": reference}, registry=registry, format_checker=formats)
        said = [error.message for error in validator.iter_errors(given)]
        assert not said, (reference, said)

    def published(reference: str) -> str:
        name, _, part = reference.partition("#")
        same = [known for known in schemas if known.rpartition("/")[2] == name.rpartition("/")[2]]
        return "#".join((name if name in schemas else same[0], part)) if same else ""

    for event in events:
        validate(event, event["schemaURL"])
        for part in [event["run"], event["job"], *event["inputs"], *event["outputs"]]:
            for kind in ("facets", "inputFacets", "outputFacets"):
                for name, facet in part.get(kind, {}).items():
                    if reference := published(facet["_schemaURL"]):
                        validate(facet, reference)
                        if not name.startswith("backstory_"):
                            validate({name: facet}, reference.partition("#")[0])


def check_openlineage(path: str, *spec: str) -> None:
    """Checks that the client's classes and the named schemas, if present, accept every event."""
    from openlineage.client import event_v2, facet_v2

    facets = {
        "parent": facet_v2.parent_run.ParentRunFacet,
        "sourceCode": facet_v2.source_code_job.SourceCodeJobFacet,
        "jobType": facet_v2.job_type_job.JobTypeJobFacet,
        "version": facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet,
    }

    def known(given: dict) -> dict:
        made = {}
        for name, fields in given.items():
            assert fields["_producer"] and fields["_schemaURL"], name
            if name in facets:
                assert fields["_schemaURL"] == facets[name]._get_schema(), name
                fields = {key: value for key, value in fields.items() if not key.startswith("_")}
                if name == "parent":
                    fields = {
                        "run": facet_v2.parent_run.Run(**fields["run"]),
                        "job": facet_v2.parent_run.Job(**fields["job"]),
                    }
                made[name] = facets[name](**fields)
            else:
                assert name.startswith("backstory_"), name
        return made

    events = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    for directory in spec:
        openlineage_schemas(events, pathlib.Path(directory))
    for event in events:
        run, job = event["run"], event["job"]
        event_v2.RunEvent(
            eventTime=event["eventTime"],
            producer=event["producer"],
            eventType=event_v2.RunState[event["eventType"]],
            run=event_v2.Run(runId=run["runId"], facets=known(run["facets"])),
            job=event_v2.Job(namespace=job["namespace"], name=job["name"], facets=known(job["facets"])),
            inputs=[event_v2.InputDataset(d["namespace"], d["name"], known(d["facets"])) for d in event["inputs"]],
            outputs=[event_v2.OutputDataset(d["namespace"], d["name"], known(d["facets"])) for d in event["outputs"]],
        )
        assert event["schemaURL"].endswith("#/$defs/RunEvent")
    begun = {event["run"]["runId"] for event in events if event["eventType"] == "START"}
    ended = {event["run"]["runId"] for event in events if event["eventType"] == "COMPLETE"}
    assert begun and begun == ended
    times = [event["eventTime"] for event in events]
    print(json.dumps({"runs": len(begun), "outputs": sorted({d["name"] for e in events for d in e["outputs"]})}))
    assert len(times) == 2 * len(begun)


def check_in_toto(path: str) -> None:
    import google.protobuf.json_format as protobuf
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement

    text = pathlib.Path(path).read_text()
    statement = Statement.copy_from_pb(protobuf.Parse(text, statement_pb2.Statement()))
    statement.validate()
    predicate = json.loads(text)["predicate"]
    parsed = protobuf.ParseDict(predicate, provenance_pb2.Provenance())
    subjects = {subject.name: subject.digest["sha256"] for subject in statement.pb.subject}
    needed = [entry.uri for entry in parsed.build_definition.resolved_dependencies]
    print(json.dumps({"subjects": subjects, "dependencies": needed}))


def check_in_toto_link(*paths: str) -> None:
    """Signs links by in-toto-sign, writes a layout for their steps, and runs in-toto-verify.

    Each step may only use files that a step before it made, and the sources `in1`, `in2` and
    `*.sh`. Files of the system have absolute names. Prints the exit status and the message.
    """
    import shutil
    import subprocess
    import tempfile

    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from in_toto.models.layout import Layout, Step
    from in_toto.models.metadata import Metablock
    from securesystemslib.signer import CryptoSigner

    place = pathlib.Path(tempfile.mkdtemp())
    key = ed25519.Ed25519PrivateKey.generate()
    signer = CryptoSigner(key)
    plain, pem = serialization.NoEncryption(), serialization.Encoding.PEM
    (place / "key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (place / "key.pub").write_bytes(public)
    tools = pathlib.Path(sys.executable).parent
    steps, before = [], []
    for path in paths:
        # Without a name for the result, in-toto-sign makes it of the step's name and the key.
        subprocess.run([tools / "in-toto-sign", "-f", path, "-k", place / "key"], cwd=place, check=True)
        name = json.loads(pathlib.Path(path).read_text())["signed"]["name"]
        made = [["MATCH", "*", "WITH", "PRODUCTS", "FROM", step] for step in before]
        given = [["ALLOW", pattern] for pattern in ("in1", "in2", "*.sh", "/*")]
        steps.append(
            Step(
                name=name,
                pubkeys=[signer.public_key.keyid],
                expected_materials=[*made, *given, ["DISALLOW", "*"]],
                expected_products=[["CREATE", "*"], ["DISALLOW", "*"]],
            )
        )
        before.append(name)
    layout = Layout(steps=steps)
    layout.add_functionary_key_from_path(str(place / "key.pub"))
    layout.set_relative_expiration(days=1)
    signed = Metablock(signed=layout)
    signed.create_signature(signer)
    signed.dump(str(place / "layout"))
    verified = subprocess.run(
        [tools / "in-toto-verify", "-l", "layout", "--verification-keys", "key.pub"],
        cwd=place,
        capture_output=True,
        text=True,
    )
    shutil.rmtree(place)
    print(json.dumps({"status": verified.returncode, "said": verified.stdout + verified.stderr}))


def check_bundle(path: str, key: str) -> None:
    """Verifies the envelope of a bundle by in-toto's library. Prints whether it is valid."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    bundle = json.loads(pathlib.Path(path).read_text())
    assert bundle["verificationMaterial"]["tlogEntries"] == []
    signer = SSlibKey.from_crypto(load_pem_public_key(pathlib.Path(key).read_bytes()))
    # A bundle names its key beside the envelope.
    for signature in bundle["dsseEnvelope"]["signatures"]:
        signature["keyid"] = signer.keyid
    try:
        Envelope.from_dict(bundle["dsseEnvelope"]).verify([signer], 1)
    except VerificationError:
        print(json.dumps(False))
    else:
        print(json.dumps(True))


def check_spdx(path: str) -> None:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    document = parse_file(path)
    assert not (said := validate_full_spdx_document(document)), [message.validation_message for message in said]
    names = {entry.spdx_id: entry.name for entry in document.files + document.packages}
    relations = [
        [names[r.spdx_element_id], r.relationship_type.name, names[r.related_spdx_element_id]]
        for r in document.relationships
        if r.spdx_element_id in names
    ]
    print(json.dumps({"relations": relations, "packages": [package.name for package in document.packages]}))


def check_cyclonedx(path: str) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    said = JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(path).read_text())
    assert said is None, said


def check_ro_crate(path: str, file: str) -> None:
    """The profile's validator, and the ancestry of a file by SPARQL."""
    import requests
    from rdflib.plugins.shared.jsonld import context, util

    place = pathlib.Path(importlib.util.find_spec("rocrate").origin).parent / "data/ro-crate.jsonld"
    vocabulary = place.read_text()
    native = util.source_to_json

    # Tests are offline: the context is the one that the reference library brings.
    def local(source, *rest, **named):
        if isinstance(source, str) and source.startswith("http"):
            assert source.startswith("https://w3id.org/ro/crate/1.1/context"), source
            return json.loads(vocabulary), None
        return native(source, *rest, **named)

    def send(_, request, **__):
        answer = requests.Response()
        answer.request, answer.url = request, request.url
        answer.status_code = 200 if request.url.startswith("https://w3id.org/ro/crate/1.1/context") else 404
        answer._content = vocabulary.encode()
        answer.headers["Content-Type"] = "application/ld+json"
        return answer

    util.source_to_json = context.source_to_json = local
    requests.Session.send = send
    from rocrate_validator import models, services
    from rocrate_validator.utils import document_loader

    document_loader._installed = True
    # This profile brings the profiles that it builds on: Workflow RO-Crate, Process Run Crate and
    # Workflow Run Crate.
    settings = {
        "rocrate_uri": path,
        "profile_identifier": "provenance-run-crate-0.5",
        "requirement_severity": models.Severity.REQUIRED,
        "no_cache": True,
    }
    result = services.validate(settings)
    assert result.passed(), [issue.message for issue in result.get_issues()]

    import rdflib

    graph = rdflib.Graph()
    # The query goes through the actions of the steps, which alone are objects of a control action.
    # The action of the whole workflow does not say which file came from which.
    graph.parse(str(pathlib.Path(path) / "ro-crate-metadata.json"), format="json-ld")
    found = graph.query(
        """PREFIX s: <http://schema.org/>
           SELECT DISTINCT ?path WHERE {
             ?file s:alternateName ?wanted . ?source s:alternateName ?path .
             ?file (^s:result / ^s:object / s:object / s:object)+ ?source }""",
        initBindings={"wanted": rdflib.Literal(file)},
    )
    print(json.dumps(sorted(str(row.path) for row in found)))


def check_perfetto(path: str) -> None:
    """Checks that Perfetto's classes know every field, and that slices nest on their tracks.

    Prints the tracks, the slices and the arrows.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BUILTIN_CLOCK_REALTIME, Trace, TrackEvent

    def known(message) -> None:
        assert not len(UnknownFieldSet(message)), message
        for field, value in message.ListFields():
            if field.message_type:
                for part in value if field.is_repeated else [value]:
                    known(part)

    trace = Trace.FromString(pathlib.Path(path).read_bytes())
    known(trace)
    assert all(packet.trusted_packet_sequence_id for packet in trace.packet)
    assert any(clock.clock_id == BUILTIN_CLOCK_REALTIME for clock in trace.packet[0].clock_snapshot.clocks)
    tracks, open_, slices, flows = {}, {}, [], {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
            tracks[track.uuid] = track.name
    # As they are read: by time, and of one time as they stand.
    for packet in sorted((one for one in trace.packet if one.HasField("track_event")), key=lambda one: one.timestamp):
        event = packet.track_event
        assert event.track_uuid in tracks
        within = open_.setdefault(event.track_uuid, [])
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert not within, "an activity's slice stands alone"
            facts = {fact.name: fact.string_value or fact.int_value for fact in event.debug_annotations}
            within.append(facts["command"])
            slices.append([event.name, facts])
        elif event.type == TrackEvent.TYPE_SLICE_END:
            within.pop()
        else:
            assert event.type == TrackEvent.TYPE_INSTANT and event.name
            for flow in event.flow_ids:
                assert flow not in flows
                flows[flow] = [within[-1], event.name]
            for flow in event.terminating_flow_ids:
                assert len(flows[flow]) == 2
                flows[flow] += [event.name, within[-1]]
    assert not any(open_.values()), "every slice ends"
    assert all(len(flow) == 4 for flow in flows.values()), "every arrow ends"
    print(json.dumps({"tracks": list(tracks.values()), "slices": slices, "arrows": list(flows.values())}))


def check_graphml(path: str, file: str) -> None:
    """Prints every entity's path that leads to `file`."""
    import networkx

    graph = networkx.read_graphml(path, force_multigraph=True)
    sorts = networkx.get_node_attributes(graph, "sort")
    labels = networkx.get_node_attributes(graph, "label")
    assert len(sorts) == len(labels) == len(graph)
    assert {fact["certainty"] for *_, fact in graph.edges(data=True)} <= {"seen", "possible"}
    known = set()
    for node in [node for node, label in labels.items() if label == file]:
        known |= {node} | networkx.ancestors(graph, node)
    print(json.dumps(sorted({labels[node] for node in known if sorts[node] != "activity"})))


def _path_of(node: str, labels: dict[str, str], edges: list[tuple[str, str]]) -> set[str]:
    """Returns every node that leads to `node`."""
    before: dict[str, set[str]] = {}
    for source, target in edges:
        before.setdefault(target, set()).add(source)
    known: set[str] = set()
    pending = [node]
    while pending:
        node = pending.pop()
        if node not in known:
            known.add(node)
            assert node in labels, "an edge has two nodes"
            pending += before.get(node, ())
    return known


def _print_origins(
    file: str, labels: dict[str, str], things: set[str], edges: list[tuple[str, str]]
) -> None:
    """Prints the path of every thing that leads to `file`."""
    known = set().union(*(_path_of(node, labels, edges) for node in things if labels[node] == file))
    print(json.dumps(sorted({labels[node] for node in known & things})))


def check_neo4j(path: str, file: str) -> None:
    """Reads the files as neo4j-admin does. Prints every thing's path that leads to `file`."""
    import csv

    def rows(name: str) -> list[dict[str, str]]:
        with open(f"{path}/{name}", newline="") as table:
            return list(csv.DictReader(table, strict=True, escapechar="\\"))

    processes, things, flows = rows("processes.csv"), rows("things.csv"), rows("flows.csv")
    labels = {row["id:ID"]: row["label"] for row in processes} | {row["id:ID"]: row["path"] for row in things}
    assert len(labels) == len(processes) + len(things), "an id is unique"
    assert {row[":LABEL"] for row in processes + things} <= {"Node;Process", "Node;Thing"}
    assert all(float(row["started:double"]) <= float(row["ended:double"]) for row in processes + flows)
    assert all(row["exit:long"] == "" or int(row["exit:long"]) >= 0 for row in processes)
    edges = [(row[":START_ID"], row[":END_ID"]) for row in flows]
    _print_origins(file, labels, {row["id:ID"] for row in things}, edges)


def check_opm(path: str, file: str) -> None:
    """Reads lines by the rules of SPADE's reporter DSL, and checks the ends of each edge.

    Prints every artifact's path that leads to `file`.
    """
    ends = {
        "Used": ("Process", "Artifact"),
        "WasGeneratedBy": ("Artifact", "Process"),
        "WasTriggeredBy": ("Process", "Process"),
        "WasDerivedFrom": ("Artifact", "Artifact"),
    }
    sorts, labels, edges = {}, {}, []
    for line in pathlib.Path(path).read_text().splitlines():
        facts = {}
        for word in re.split(r"(?<!\\) ", line):
            key, value = (re.sub(r"\\(?=[: ])", "", part) for part in re.split(r"(?<!\\):", word, maxsplit=1))
            assert key not in facts, f"{key} stands twice in: {line}"
            facts[key] = value
        if facts["type"] in ends:
            assert tuple(sorts[facts[end]] for end in ("from", "to")) == ends[facts["type"]], line
            edges.append((facts["to"], facts["from"]))
        else:
            assert facts["id"] not in sorts
            sorts[facts["id"]] = facts["type"]
            labels[facts["id"]] = facts.get("path", facts.get("name", ""))
    things = {node for node, sort in sorts.items() if sort == "Artifact"}
    _print_origins(file, labels, things, edges)


def _plain_cdm(schema, value, named: dict):
    """A value of the data sets' JSON as the value that its schema describes.

    A union's value has its type's name, and a UUID is text. No field may be missing or unknown.
    """
    import uuid

    if isinstance(schema, str):
        schema = named.get(schema, schema)
    if isinstance(schema, list):
        if value is None:
            assert "null" in schema
            return None
        ((name, inner),) = value.items()
        kinds = {kind if isinstance(kind, str) else kind.get("name", kind["type"]): kind for kind in schema}
        return _plain_cdm(kinds[name], inner, named)
    if not isinstance(schema, dict):
        return value
    match schema["type"]:
        case "record":
            fields = {field["name"]: field["type"] for field in schema["fields"]}
            assert fields.keys() == value.keys(), (schema["name"], fields.keys() ^ value.keys())
            return {name: _plain_cdm(kind, value[name], named) for name, kind in fields.items()}
        case "array":
            return [_plain_cdm(schema["items"], item, named) for item in value]
        case "fixed" if schema["name"].endswith(".UUID"):
            return uuid.UUID(value).bytes
    return value


def check_cdm(path: str, schema: str, file: str) -> None:
    """Checks each record against the schema. Prints every object's path that leads to `file`."""
    import io

    import fastavro

    parsed = fastavro.parse_schema(json.loads(pathlib.Path(schema).read_text()))
    named = parsed["__named_schemas"]
    kinds: dict[str, int] = {}
    labels, things, edges = {}, set(), []
    forward = {"WRITE", "SENDMSG", "CREATE_OBJECT", "RENAME", "MODIFY_FILE_ATTRIBUTES", "UNLINK"}
    forward |= {"FORK", "EXECUTE", "SIGNAL"}
    for line in pathlib.Path(path).read_text().splitlines():
        record = json.loads(line)
        ((kind, datum),) = record["datum"].items()
        plain = {
            **{name: record[name] for name in ("CDMVersion", "type", "sessionNumber", "source")},
            "hostId": _plain_cdm(f"{parsed['name'].rpartition('.')[0]}.UUID", record["hostId"], named),
            "datum": (kind, _plain_cdm(kind, datum, named)),
        }
        assert record.keys() == plain.keys()
        fastavro.schemaless_writer(io.BytesIO(), parsed, plain, strict=True)
        assert fastavro.validate(plain, parsed, strict=True)
        if record["type"] == "RECORD_END_MARKER":
            assert {key: int(count) for key, count in datum["recordCounts"].items()} == kinds
        kinds[record["type"]] = kinds.get(record["type"], 0) + 1
        uuid_of = lambda name: next(iter(datum[name].values())) if datum[name] else None  # noqa: E731
        if record["type"] == "RECORD_EVENT":
            event = datum["type"].removeprefix("EVENT_")
            ends = [uuid_of(name) for name in ("subject", "predicateObject", "predicateObject2")]
            ends = [end for end in ends if end]
            if event == "EXIT":
                assert len(ends) == 1
                continue
            assert len(ends) == 2, datum
            turned = uuid_of("subject") and event not in forward
            edges.append(tuple(reversed(ends)) if turned else tuple(ends))
        elif record["type"] == "RECORD_SUBJECT":
            labels[datum["uuid"]] = datum["cmdLine"]["string"]
        elif "baseObject" in datum:
            labels[datum["uuid"]] = datum["baseObject"]["properties"]["map"]["path"]
            things.add(datum["uuid"])
    assert kinds["RECORD_HOST"] == kinds["RECORD_END_MARKER"] == 1
    _print_origins(file, labels, things, edges)


def check_ocsf(path: str) -> None:
    """Checks each event against the class of the standard, without an attribute that it lacks.

    Prints the programs that were launched, the exit codes, and the files by activity.
    """
    from ocsf import OCSFBaseModel
    from ocsf.v1_7_0 import events

    classes = {
        1001: events.FileActivity,
        1005: events.ModuleActivity,
        1007: events.ProcessActivity,
        4001: events.NetworkActivity,
    }

    def known(value) -> None:
        if isinstance(value, list):
            for one in value:
                known(one)
        if isinstance(value, OCSFBaseModel):
            assert type(value).__name__ == "Object" or not value.model_extra, (type(value), value.model_extra)
            for name in type(value).model_fields:
                known(getattr(value, name))

    found: dict[str, list] = {"launched": [], "exits": [], "times": []}
    for line in pathlib.Path(path).read_text().splitlines():
        given = json.loads(line)
        event = classes[given["class_uid"]].model_validate(given)
        known(event)
        assert given["type_uid"] == given["class_uid"] * 100 + given["activity_id"]
        assert event.activity_id is not None
        found["times"].append(given["time"])
        match given["class_uid"], given["activity_id"]:
            case 1007, 1:
                found["launched"].append(given["process"].get("name"))
            case 1007, 2:
                found["exits"].append(given["exit_code"])
            case 1001, activity:
                found.setdefault(str(activity), []).append(given["file"]["path"])
    times = found.pop("times")
    assert times == sorted(times)
    print(json.dumps({key: sorted(map(str, values)) for key, values in found.items()}))


def check_ecs(path: str, schema: str) -> None:
    """Checks that each field is one of the schema, and of its type.

    Prints the programs that were started, and the files by type of event.
    """
    import datetime
    import ipaddress

    known = json.loads(pathlib.Path(schema).read_text())
    checks = {
        "date": lambda value: datetime.datetime.fromisoformat(value),
        "ip": ipaddress.ip_address,
        "long": lambda value: value + 0,
        "keyword": lambda value: value.encode(),
        "wildcard": lambda value: value.encode(),
    }

    def leaves(value, name=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from leaves(inner, f"{name}.{key}" if name else key)
        else:
            yield name, value

    found: dict[str, list] = {}
    for line in pathlib.Path(path).read_text().splitlines():
        event = json.loads(line)
        for name, value in leaves(event):
            if name.startswith("labels."):
                assert isinstance(value, str) and name.count(".") == 1, name
                continue
            kind = known["fields"][name]
            values = value if kind.endswith("[]") else [value]
            assert isinstance(values, list), name
            for one in values:
                checks[kind.removesuffix("[]")](one)
        facts = event["event"]
        assert facts["kind"] in known["kind"] and facts["outcome"] in known["outcome"]
        for category in facts["category"]:
            assert set(facts["type"]) <= set(known["category"][category]), facts
        if "file" in event:
            found.setdefault(facts["type"][0], []).append(event["file"]["path"])
        elif facts["type"] == ["start"] and "dll" not in event:
            found.setdefault("started", []).append(event["process"].get("name", ""))
    print(json.dumps({key: sorted(values) for key, values in found.items()}))


def check_parquet(path: str, file: str) -> None:
    """Checks that the tables are consistent.

    Prints the path of every entity that leads to `file`, by a recursive query.
    """
    import duckdb

    tables = duckdb.connect()
    for table in ("runs", "activities", "entities", "edges"):
        tables.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}/{table}.parquet'")
    one = tables.execute("SELECT count(*), count(DISTINCT run), min(ended - started) > INTERVAL 0 SECOND FROM runs")
    assert one.fetchone() == (1, 1, True)
    loose = """SELECT count(*) FROM edges
               WHERE source NOT IN (SELECT activity FROM activities UNION SELECT entity FROM entities)
                  OR target NOT IN (SELECT activity FROM activities UNION SELECT entity FROM entities)"""
    assert tables.execute(loose).fetchone() == (0,)
    kept = tables.execute("SELECT size, length(blake3) FROM entities WHERE path = ? AND last", [file])
    assert kept.fetchone() == (pathlib.Path(file).stat().st_size, 64)
    found = tables.execute(
        """WITH RECURSIVE before(node) AS (
             SELECT entity FROM entities WHERE path = ?
             UNION SELECT source FROM edges JOIN before ON target = node)
           SELECT DISTINCT path FROM entities JOIN before ON entity = node ORDER BY path""",
        [file],
    )
    print(json.dumps([path for (path,) in found.fetchall()]))


if __name__ == "__main__":
    {
        "prov": check_prov,
        "openlineage": check_openlineage,
        "in-toto": check_in_toto,
        "in-toto-link": check_in_toto_link,
        "bundle": check_bundle,
        "spdx": check_spdx,
        "cyclonedx": check_cyclonedx,
        "ro-crate": check_ro_crate,
        "graphml": check_graphml,
        "neo4j": check_neo4j,
        "opm": check_opm,
        "cdm": check_cdm,
        "ocsf": check_ocsf,
        "ecs": check_ecs,
        "parquet": check_parquet,
        "perfetto": check_perfetto,
    }[sys.argv[1]](*sys.argv[2:])
