#!/usr/bin/env python3
"""Builds a temporary package that depends on this one by its path, with the unchanged code of GettingStarted.md, and runs the
tests of Tests/OwnPackage in it.

It imports only the listed products, under the strict import rules. So the build fails if the documentation needs a type that
no product gives.
"""

import json
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

MANIFEST = f"""// swift-tools-version: 6.2.3
import PackageDescription

let package = Package(
    name: "throw-away",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "limited-login", path: "{ROOT}", traits: [])],
    targets: {json.dumps(OWN_TARGETS)}.map {{ .target(name: $0) }} + [
        .executableTarget(
            name: "app",
            dependencies: {json.dumps(OWN_TARGETS)}.map {{ .target(name: $0) }} + [
                .product(name: "LimitedLogin", package: "limited-login"),
                .product(name: "LimitedLoginKeys", package: "limited-login"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]
        ),
        .testTarget(
            name: "AppTests",
            dependencies: [
                "app",
                .product(name: "LimitedLogin", package: "limited-login"),
                .product(name: "LimitedLoginKeys", package: "limited-login"),
                .product(name: "LimitedLoginTesting", package: "limited-login"),
            ]
        ),
    ]
)
"""

IMPORTS = "import Foundation\nimport LimitedLoginHTTPS\nimport LimitedLoginKeys\nimport LimitedLogin\n\n"

OWN_IMPORTS = "".join(f"import {name}\n" for name in OWN_TARGETS) + "\n"

# A test of such a server needs keys and a clock of its own, and every part of a rejection.
OWN_TEST = """
func judge(_ token: String, keys: String, nonce: String) async throws -> Profile? {
    let keySet = try JSONWebKeySet(parsing: keys)
    let policy = try VerificationPolicy(appIDs: ["1"], binding: .required, tracking: .limited)
    let verifier = LoginVerifier(policy: policy, keys: keySet, clock: { 1_700_000_000 })
    do {
        return try await verifier.verify(token, nonce: nonce).profile
    } catch let rejection as Rejection {
        switch rejection.code {
        case .expired, .tooOld: print("log in again")
        case .nonceMismatch: print("another login:", rejection.claim ?? "", rejection.detail)
        default: print(rejection)
        }
        return nil
    }
}

// Tells an outage from a refusal.
func status(of error: any Error) -> Int {
    error is Unavailable ? 500 : 403
}

func judge(_ request: String, cache: JWKSetCache) throws -> String? {
    guard cache.snapshot.isUsable, let now = NumericDate(secondsSince1970: 1_700_000_000) else { return nil }
    return try SignedRequest(verifying: request, secrets: [(appID: "1", secret: "s")], now: now).userID
}

@main
struct App {
    static func main() async throws {
        let keys = try makeKeys(url: "https://issuer.example/jwks")
        _ = try await logIn("", nonceOfSession: Nonce.generate().value, with: makeVerifier(appID: "1", keys: keys))
        _ = try await judge("", keys: "{}", nonce: "n")
    }
}
"""


def main():
    for folder in ["Sources", "Tests"]:
        shutil.rmtree(PLACE / folder, ignore_errors=True)
    (PLACE / "Sources/app").mkdir(parents=True)
    (PLACE / "Package.swift").write_text(MANIFEST)
    for name in OWN_TARGETS:
        (PLACE / "Sources" / name).mkdir()
        (PLACE / f"Sources/{name}/{name}.swift").write_text(f"public enum {name}Marker {{}}\n")
    snippets = re.findall(r"```swift\n(.*?)\n```", PAGE.read_text(), re.S)
    # Leave out the tests, which have a file of their own, and the HTTP client of another package, which the examples build.
    snippets = [snippet for snippet in snippets if "@Test" not in snippet and "HTTPClient." not in snippet]
    if not snippets:
        sys.exit(f"{PAGE.name} has no code")
    (PLACE / "Sources/app/App.swift").write_text(IMPORTS + OWN_IMPORTS + "\n\n".join(snippets) + "\n" + OWN_TEST)
    shutil.copytree(TESTS, PLACE / "Tests/AppTests", dirs_exist_ok=True)
    done = harness.run(["swift", "test", "--disable-xctest", "--explicit-target-dependency-import-check", "error", *harness.MADE_ONCE],
                    cwd=PLACE)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    # Without the trait of the program no other package may be fetched.
    pins = PLACE / "Package.resolved"
    if pins.exists() and json.loads(pins.read_text())["pins"]:
        sys.exit(f"a user of the libraries resolves {pins.read_text()}")
    print(re.findall(r"Test run with .*", done.stdout + done.stderr)[-1])
    print(f"a package of its own builds with the {len(snippets)} pieces of {PAGE.name}")


if __name__ == "__main__":
    main()
