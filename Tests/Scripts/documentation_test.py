#!/usr/bin/env python3
"""Builds the documentation of the library products and of the service, and judges it.

  1. every public symbol of the library products and of LLJOSE has a documentation comment, and every type a topic;
  2. docc builds the documentation of each, with its links, without a warning;
  3. the code in GettingStarted.md is the code of the package in Tests/Examples, which other tests compile and run;
  4. the newest version in each changelog is the program's.
"""

import json
import pathlib
import re
import sys
import tempfile

from harness import ROOT, output, run

PRODUCTS = ["LimitedLogin", "LLJOSE", "LimitedLoginKeys", "LimitedLoginHTTPS", "LimitedLoginTesting"]
CATALOGS = [*PRODUCTS, "LLService"]
SNIPPETS = [
    ROOT / "Tests/Examples/HummingbirdServer/Sources/getting-started/GettingStarted.swift",
    ROOT / "Tests/Examples/HummingbirdServer/Sources/AsyncHTTPClientSource/AsyncHTTPClientSource.swift",
    ROOT / "Tests/Examples/HummingbirdServer/Sources/key-service/KeyService.swift",
    ROOT / "Tests/OwnPackage/HandlerTests.swift",
]
CATALOG = ROOT / "Sources/LimitedLogin/LimitedLogin.docc"


def symbol_graphs(folder):
    """Lets the compiler write the public symbols of each module."""
    modules = output(["swift", "build", "--show-bin-path"], cwd=ROOT).strip()
    triple = json.loads(output(["swiftc", "-print-target-info"]))["target"]["triple"]
    output(["swift", "build"], cwd=ROOT)
    for module in CATALOGS:
        place = pathlib.Path(folder) / module
        place.mkdir()
        output([
            "swift-symbolgraph-extract", "-module-name", module, "-target", triple, "-I", f"{modules}/Modules",
            "-I", ROOT / "Sources/CLLOpenSSL", "-I", f"{modules}/CLLSystem.build", "-I", f"{modules}/CLLDocuments.build",
            "-output-dir", place, "-minimum-access-level", "public", "-skip-synthesized-members",
        ], cwd=ROOT)


def undocumented(folder):
    """Public symbols without a comment, except those that the compiler makes and those that a protocol's comment explains, and
    public types without a topic on their library's page."""
    found, count = [], 0
    for file in sorted(pathlib.Path(folder).glob("*/*.symbols.json")):
        graph = json.loads(file.read_text())
        inherits = {
            relation["source"] for relation in graph["relationships"]
            if relation["kind"] in ("overrides", "optionalRequirementOf") or "sourceOrigin" in relation
        }
        for symbol in graph["symbols"]:
            if symbol["accessLevel"] not in ("public", "open") or "location" not in symbol:
                continue
            count += 1
            name, page = symbol["pathComponents"][0], ROOT / f"Sources/{file.parent.name}/{file.parent.name}.docc/{file.parent.name}.md"
            if len(symbol["pathComponents"]) == 1 and file.parent.name in PRODUCTS and f"- ``{name}``" not in page.read_text():
                found.append(f"{name} has no topic in {page.name}")
            if "docComment" not in symbol and symbol["identifier"]["precise"] not in inherits:
                found.append(f"{file.parent.name}: {'.'.join(symbol['pathComponents'])}")
    return found, count


def build(product, folder):
    """docc's complaints about one catalog."""
    command = [
        "docc", "convert", str(ROOT / f"Sources/{product}/{product}.docc"),
        "--additional-symbol-graph-dir", f"{folder}/{product}", "--output-path", f"{folder}/{product}.doccarchive",
        "--fallback-display-name", product, "--fallback-bundle-identifier", f"limited-login.{product}",
        "--warnings-as-errors",
    ]
    done = run(command)
    return [] if done.returncode == 0 and "warning" not in done.stderr else [done.stdout + done.stderr]


def snippets():
    text = "\n".join(file.read_text() for file in SNIPPETS)
    source = re.findall(r"// snippet: \S+\n(.*?)\n// end", text, re.S)
    page = re.findall(r"```swift\n(.*?)\n```", (CATALOG / "GettingStarted.md").read_text(), re.S)
    return [] if sorted(page) == sorted(source) else ["GettingStarted.md differs from its compiled source"]


def version():
    text = (ROOT / "Sources/limited-login/LimitedLoginCommand.swift").read_text()
    number = re.search(r'number = "([^"]+)"', text).group(1)
    faults = []
    for catalog in ("LimitedLogin", "LLService"):
        text = (ROOT / f"Sources/{catalog}/{catalog}.docc/Changelog.md").read_text()
        newest = re.search(r"^### (\S+)(?: \(\d{4}-\d\d-\d\d\))?$", text, re.M).group(1)
        faults += [] if newest == number else [f"{catalog}'s newest version is {newest} in its changelog, the program's {number}"]
    for file, line in [
        ("Dockerfile", f"ARG VERSION={number}\n"), ("config/kubernetes/overlays/example/kustomization.yaml", f"newTag: {number}\n"),
    ]:
        faults += [] if line in (ROOT / file).read_text() else [f"{file} does not say {line.strip()}"]
    return faults


def main():
    faults = snippets() + version()
    with tempfile.TemporaryDirectory() as folder:
        symbol_graphs(folder)
        missing, count = undocumented(folder)
        faults += [f"no documentation: {name}" for name in missing]
        for target in CATALOGS:
            faults += build(target, folder)
    print("\n".join(faults) or f"documentation: {count} public symbols, each documented; {', '.join(CATALOGS)} built")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
