"""Structural checks of an OpenAPI 3.1 document: what every generator and client relies on."""
import re

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def resolves(document, reference):
    """Whether the target of a local `$ref` exists."""
    if not reference.startswith("#/"):
        return False
    place = document
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and part in place:
            place = place[part]
        elif isinstance(place, list) and part.isdigit() and int(part) < len(place):
            place = place[int(part)]
        else:
            return False
    return True


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = value.values()
    elif not isinstance(value, list):
        return
    for inner in value:
        yield from references(inner)


def operations(document):
    for path, item in document.get("paths", {}).items():
        for method, operation in item.items():
            if method in METHODS:
                yield path, method, operation, item.get("parameters", [])


def problems(document):
    """All problems of the document."""
    found = []
    if not re.match(r"3\.1\.", str(document.get("openapi"))):
        found.append(f"openapi is {document.get('openapi')!r}, not 3.1")
    if not document.get("info", {}).get("title") or not document.get("info", {}).get("version"):
        found.append("info needs a title and a version")
    if not document.get("paths"):
        found.append("no paths")
    ids = set()
    for path, method, operation, shared in operations(document):
        place = f"{method.upper()} {path}"
        if not path.startswith("/"):
            found.append(f"{place}: the path does not start with /")
        if not operation.get("responses"):
            found.append(f"{place}: no responses")
        for status, response in operation.get("responses", {}).items():
            if not re.fullmatch(r"[1-5]([0-9]{2}|XX)|default", status):
                found.append(f"{place}: status {status!r}")
            if "$ref" not in response and not isinstance(response.get("description"), str):
                found.append(f"{place} {status}: no description")
        name = operation.get("operationId")
        if name in ids:
            found.append(f"{place}: operationId {name} is used twice")
        ids.add(name or object())
        declared = {p.get("name") for p in [*shared, *operation.get("parameters", [])] if p.get("in") == "path"}
        for parameter in set(re.findall(r"{([^}]+)}", path)) ^ declared:
            found.append(f"{place}: path parameter {parameter} is not in both path and parameters")
    found += [f"{reference} leads nowhere" for reference in sorted(set(references(document)))
              if not resolves(document, reference)]
    return found
