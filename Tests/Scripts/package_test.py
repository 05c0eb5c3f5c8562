#!/usr/bin/env python3
"""Builds a temporary package that depends on this one by its path, with the unchanged code of GettingStarted.md, and runs the
tests of Tests/OwnPackage in it.

It imports only the listed products, under the strict import rules. So the build fails if the documentation needs a type that
no product gives.
"""

import json
import os
import re
import shutil
import sys

import harness

ROOT = harness.ROOT
PAGE = ROOT / "Sources/LimitedLogin/LimitedLogin.docc/GettingStarted.md"
PLACE = ROOT / ".build/throw-away"
TESTS = ROOT / "Tests/OwnPackage"

# Target names of other packages. SwiftPM refuses a build if two packages have a target of the same name.
OWN_TARGETS = [
    "Bytes", "Graph", "HTTP1", "HTTPClient", "HTTPServer", "JOSE", "KeySets", "LoginStores", "OpenSSL", "Sockets",
    "StandInIssuer", "TestProcess", "TestSupport", "VerificationService",
]


def products(*names):
    return ", ".join(f'.product(name: "{name}", package: "limited-login")' for name in names)


MANIFEST = f"""// swift-tools-version: 6.2.3
import PackageDescription

let own: [Target.Dependency] = {json.dumps(OWN_TARGETS)}.map {{ .target(name: $0) }}
let package = Package(
    name: "throw-away",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "limited-login", path: "{ROOT}", traits: [])],
    targets: {json.dumps(OWN_TARGETS)}.map {{ .target(name: $0) }} + [
        .executableTarget(
            name: "app",
            dependencies: own + [{products("LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS")}],
            swiftSettings: [
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]
        ),
        .executableTarget(name: "plain", dependencies: [{products("LimitedLogin", "LimitedLoginKeys")}]),
        .testTarget(
            name: "AppTests",
            dependencies: ["app", {products("LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LimitedLoginTesting")}]
        ),
    ]
)
"""

IMPORTS = "import Foundation\nimport LimitedLoginHTTPS\nimport LimitedLoginKeys\nimport LimitedLogin\n\n"

OWN_IMPORTS = "".join(f"import {name}\n" for name in OWN_TARGETS) + "\n"

OWN_TEST = """
@main
struct App {
    static func main() async throws {
        let verifier = try makeVerifier(appID: "1", keys: makeKeys(url: "https://issuer.example/jwks"))
        _ = try await logIn("", session: "s", LoginNonces(), verifier)
    }
}
"""

# A server with a source of its own.
PLAIN = """
import LimitedLogin
import LimitedLoginKeys

let keys = try JWKSetCache(sources: [FileJWKSetSource(path: "keys.json")])
let verifier = LoginVerifier(policy: try VerificationPolicy(appIDs: ["1"]), keys: keys)
let nonces = LoginNonces()
print(try await nonces.finish("session", with: "token", by: verifier).profile)
"""
# Targets that such a server must not compile: they need Linux.
SOCKETS = ["LLHTTP", "CLLSystem", "LimitedLoginHTTPS"]

# Mistakes that would let a stranger in, and the compiler's answer to each.
MISUSES = {
    "let verified: Any = VerifiedToken.self": None,
    "struct Body: Decodable { let login: VerifiedToken }": "does not conform to protocol 'Decodable'",
    "struct Body: Decodable { let profile: Profile }": "does not conform to protocol 'Decodable'",
    "struct Body: Decodable { let token: VerifiedAccessToken }": "does not conform to protocol 'Decodable'",
    'let profile = Profile(userID: "1")': "initializer is inaccessible|no exact matches|cannot be constructed",
    "func profile(_ record: LoginRecord) -> Profile { record.profile }": "has no dynamic member 'profile'|inaccessible",
    'func logIn(_ token: String, _ user: String, _ verifier: LoginVerifier) async throws -> VerifiedToken '
    '{ try await verifier.verify(token, subject: user) }': "subject",
    'let login = TokenIssuer.Login(appID: "1", userID: "2", authenticatedAt: .now, expiresAt: nil)': "error: ",
}


# The names that the short pieces of code on the other pages and in doc comments use.
CONTEXT = """import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import LimitedLoginTesting

struct Session { let id: String }
"""
NAMES = "logins: LoginNonces, session: Session, token: String, nonce: String, verifier: LoginVerifier, policy: VerificationPolicy, " \
    "keyID: String"


def short_pieces():
    """The pieces of every other page and of the doc comments, each as a function."""
    sources = [ROOT / "Sources" / name for name in ("LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LimitedLoginTesting")]
    texts = [page.read_text() for source in sources for page in source.glob("*.docc/*.md") if page != PAGE]
    texts += [re.sub(r"(?m)^ *(?:/// ?|.*$)", lambda line: "" if "///" in line[0] else "#", file.read_text())
              for source in sources for file in source.glob("*.swift")]
    pieces = [piece for text in texts for piece in re.findall(r"```swift\n(.*?)\n```", text, re.S)]
    return pieces, CONTEXT + "".join(
        f"\nfunc piece{number}({NAMES}) async throws {{\n{piece}\n}}\n" for number, piece in enumerate(pieces))


def misuses(modules):
    faults = []
    for number, (code, answer) in enumerate(MISUSES.items()):
        file = PLACE / f"misuse-{number}.swift"
        file.write_text("import LimitedLogin\n" + code + "\n")
        done = harness.run(["swiftc", "-typecheck", "-swift-version", "6", "-I", modules, "-I", ROOT / "Sources/CLLOpenSSL", file])
        found = done.returncode == 0 if answer is None else done.returncode != 0 and re.search(answer, done.stderr)
        faults += [] if found else [f"{code}: {done.stderr or 'compiles'}"]
    return faults


def main():
    for folder in ["Sources", "Tests"]:
        shutil.rmtree(PLACE / folder, ignore_errors=True)
    (PLACE / "Sources/app").mkdir(parents=True)
    (PLACE / "Package.swift").write_text(MANIFEST)
    for name in OWN_TARGETS:
        (PLACE / "Sources" / name).mkdir()
        (PLACE / f"Sources/{name}/{name}.swift").write_text(f"public enum {name}Marker {{}}\n")
    snippets = re.findall(r"```swift\n(.*?)\n```", PAGE.read_text(), re.S)
    # Leave out the tests, which have a file of their own, and what needs other packages, which the examples build.
    others = ("@Test", "HTTPClient", "ServiceLifecycle")
    snippets = [snippet for snippet in snippets if not any(word in snippet for word in others)]
    if not snippets:
        sys.exit(f"{PAGE.name} has no code")
    (PLACE / "Sources/app/App.swift").write_text(IMPORTS + OWN_IMPORTS + "\n\n".join(snippets) + "\n" + OWN_TEST)
    shutil.copytree(TESTS, PLACE / "Tests/AppTests", dirs_exist_ok=True)
    (PLACE / "Sources/plain").mkdir()
    (PLACE / "Sources/plain/main.swift").write_text(PLAIN)
    plain = PLACE / ".build/plain"
    shutil.rmtree(plain, ignore_errors=True)
    done = harness.run(["swift", "build", "--product", "plain", "--scratch-path", plain, *harness.MADE_ONCE], cwd=PLACE)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    compiled = {path.name.removesuffix(".build") for path in plain.glob("*/debug/*.build") if any(path.rglob("*.o"))}
    if "LimitedLoginKeys" not in compiled or compiled & set(SOCKETS):
        sys.exit(f"a user of LimitedLogin and LimitedLoginKeys compiles {sorted(compiled)}")
    pieces, text = short_pieces()
    (PLACE / "Tests/AppTests/Pieces.swift").write_text(text)
    done = harness.run(["swift", "test", "--disable-xctest", "--explicit-target-dependency-import-check", "error", *harness.MADE_ONCE],
                    cwd=PLACE, env=os.environ | {"LIMITED_LOGIN": harness.build()})
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    if faults := misuses(PLACE / ".build/debug/Modules"):
        sys.exit("\n".join(faults))
    # Without the trait of the program no other package may be fetched.
    pins = PLACE / "Package.resolved"
    if pins.exists() and json.loads(pins.read_text())["pins"]:
        sys.exit(f"a user of the libraries resolves {pins.read_text()}")
    print(re.findall(r"Test run with .*", done.stdout + done.stderr)[-1])
    print(f"a package of its own builds with the {len(snippets)} pieces of {PAGE.name} and {len(pieces)} of others; {len(MISUSES) - 1} misuses do not compile; "
          f"without HTTPS only {', '.join(sorted(compiled))} are compiled")


if __name__ == "__main__":
    main()
