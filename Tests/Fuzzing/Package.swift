// swift-tools-version: 6.2
import PackageDescription

/// The sources under test are compiled here once more, through links, because the fuzzer has to see every branch of
/// them and because most of what it drives is not public.
let fuzzed: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing"]),
]

let package = Package(
    name: "limited-login",
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL"),
        .systemLibrary(name: "CLibFuzzer"),
        .target(name: "Bytes", swiftSettings: fuzzed),
        .target(name: "OpenSSL", dependencies: ["COpenSSL", "Bytes"], swiftSettings: fuzzed),
        .target(name: "JOSE", dependencies: ["Bytes"], swiftSettings: fuzzed),
        .target(name: "LimitedLogin", dependencies: ["JOSE", "OpenSSL", "Bytes"], swiftSettings: fuzzed),
        .target(name: "CSystemCalls"),
        .target(name: "COpenAPI", exclude: ["openapi.json"]),
        .target(name: "HTTP1", dependencies: ["Bytes"], swiftSettings: fuzzed),
        .target(name: "Sockets", dependencies: ["CSystemCalls", "OpenSSL", "Bytes"], swiftSettings: fuzzed),
        .target(name: "HTTPServer", dependencies: ["Sockets", "HTTP1", "OpenSSL", "Bytes"], swiftSettings: fuzzed),
        .target(name: "HTTPClient", dependencies: ["Sockets", "HTTP1", "OpenSSL", "Bytes"], swiftSettings: fuzzed),
        .target(
            name: "LoginStores",
            dependencies: ["OpenSSL", "HTTP1", "Sockets", "HTTPServer", "HTTPClient", "Bytes"],
            swiftSettings: fuzzed
        ),
        .target(
            name: "HTTPFuzzing",
            dependencies: ["Bytes", "HTTP1", "Sockets", "HTTPServer", "HTTPClient"],
            swiftSettings: fuzzed
        ),
        .executableTarget(
            name: "fuzz-http",
            dependencies: ["CLibFuzzer", "Bytes", "HTTP1", "Sockets", "HTTPServer", "HTTPClient", "HTTPFuzzing"],
            swiftSettings: fuzzed,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]
        ),
        .target(
            name: "KeySets",
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient", "Bytes"],
            swiftSettings: fuzzed
        ),
        .target(
            name: "Graph",
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient", "Bytes"],
            swiftSettings: fuzzed
        ),
        .target(
            name: "StandInIssuer",
            dependencies: ["JOSE", "OpenSSL", "HTTP1", "Sockets", "HTTPServer", "HTTPClient", "Bytes"],
            swiftSettings: fuzzed
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
            swiftSettings: fuzzed
        ),
        .executableTarget(
            name: "fuzz-service",
            dependencies: [
                "CLibFuzzer", "VerificationService", "StandInIssuer", "KeySets", "LimitedLogin", "HTTP1", "Sockets",
                "HTTPServer", "HTTPClient",
                "JOSE", "Bytes", "HTTPFuzzing", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: fuzzed,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]
        ),
        .executableTarget(
            name: "fuzz",
            dependencies: ["CLibFuzzer", "Bytes", "JOSE", "LimitedLogin", "OpenSSL", "LoginStores"],
            swiftSettings: fuzzed,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]
        ),
    ]
)
