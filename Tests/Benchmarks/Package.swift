// swift-tools-version: 6.2
import PackageDescription

/// The settings of the service's own targets, so that the same machine code is measured.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .strictMemorySafety(),
]

/// The instruments of the benchmark: small C programs that cost next to nothing themselves, and the stages of a request
/// taken apart. `run` beside this file builds them and the service, measures, and prints the table; `instructions`
/// counts what each stage executes.
///
/// The sources that the stages call are compiled here once more, through links, because most of them are not public.
let package = Package(
    name: "limited-login",
    products: [
        .executable(name: "load-generator", targets: ["load-generator"]),
        .executable(name: "bare-verify", targets: ["bare-verify"]),
        .executable(name: "least-server", targets: ["least-server"]),
        .executable(name: "stages", targets: ["stages"]),
        .library(name: "AllocationCounter", type: .dynamic, targets: ["AllocationCounter"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
    ],
    targets: [
        .executableTarget(name: "load-generator"),
        .executableTarget(name: "bare-verify", linkerSettings: [.linkedLibrary("crypto")]),
        .executableTarget(name: "least-server", linkerSettings: [.linkedLibrary("crypto")]),
        .target(name: "AllocationCounter"),
        .systemLibrary(name: "COpenSSL"),
        .target(name: "CSystemCalls"),
        .target(name: "COpenAPI", exclude: ["openapi.json"]),
        .target(name: "Bytes", swiftSettings: strict),
        .target(name: "OpenSSL", dependencies: ["COpenSSL", "Bytes"], swiftSettings: strict),
        .target(name: "JOSE", dependencies: ["Bytes"], swiftSettings: strict),
        .target(name: "LimitedLogin", dependencies: ["JOSE", "OpenSSL", "Bytes"], swiftSettings: strict),
        .target(name: "HTTP1", dependencies: ["Bytes"], swiftSettings: strict),
        .target(name: "Sockets", dependencies: ["CSystemCalls", "OpenSSL", "Bytes"], swiftSettings: strict),
        .target(name: "HTTPServer", dependencies: ["Sockets", "HTTP1", "OpenSSL", "Bytes"], swiftSettings: strict),
        .target(name: "HTTPClient", dependencies: ["Sockets", "HTTP1", "OpenSSL", "Bytes"], swiftSettings: strict),
        .target(
            name: "KeySets",
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "Graph",
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LoginStores",
            dependencies: ["OpenSSL", "HTTP1", "Sockets", "HTTPServer", "HTTPClient", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "VerificationService",
            dependencies: [
                "COpenAPI", "LimitedLogin", "KeySets", "Graph", "LoginStores", "HTTP1", "Sockets", "HTTPServer",
                "HTTPClient", "JOSE",
                "OpenSSL", "Bytes",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "stages",
            dependencies: [
                "VerificationService", "LimitedLogin", "KeySets", "HTTP1", "Sockets", "HTTPServer", "HTTPClient",
                "JOSE", "OpenSSL", "LoginStores",
                "Bytes",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
    ]
)
