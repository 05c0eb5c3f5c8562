// swift-tools-version: 6.2
import PackageDescription

/// The settings of every Swift target; each feature flag names the proposal behind it.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
    .strictMemorySafety(),  // SE-0458
    .treatAllWarnings(as: .error),  // SE-0480
]

let package = Package(
    name: "limited-login",
    products: [
        .library(name: "LimitedLogin", targets: ["LimitedLogin", "JOSE"]),
        .library(name: "KeySets", targets: ["KeySets", "JOSE"]),
        .executable(name: "limited-login", targets: ["limited-login"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
        .target(name: "CSystemCalls"),
        .target(name: "COpenAPI", exclude: ["openapi.json"]),
        .target(name: "CPage", exclude: ["page.html", "page.css", "page.js", "icon.svg"]),
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
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient"],
            swiftSettings: strict
        ),
        .target(
            name: "Graph",
            dependencies: ["JOSE", "OpenSSL", "Sockets", "HTTPClient", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LoginStores",
            dependencies: ["OpenSSL", "Sockets", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "StandInIssuer",
            dependencies: ["JOSE", "OpenSSL", "HTTP1", "Sockets", "HTTPServer", "HTTPClient", "Bytes"],
            swiftSettings: strict
        ),
        .target(
            name: "VerificationService",
            dependencies: [
                "COpenAPI", "LimitedLogin", "KeySets", "Graph", "LoginStores", "HTTP1", "Sockets", "HTTPServer",
                "HTTPClient", "JOSE",
                "OpenSSL", "Bytes",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "limited-login",
            dependencies: [
                "OpenSSL", "LimitedLogin", "KeySets", "Graph", "LoginStores", "HTTP1", "Sockets", "HTTPServer",
                "HTTPClient", "JOSE",
                "Bytes", "VerificationService",
                "StandInIssuer", "CPage",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            swiftSettings: strict
        ),
        .target(name: "TestProcess", path: "Tests/TestProcess"),
        .target(
            name: "TestSupport",
            dependencies: [
                "TestProcess", "COpenSSL", "JOSE", "OpenSSL", "HTTP1", "Sockets", "HTTPServer", "HTTPClient",
                "LimitedLogin", "StandInIssuer", "Bytes",
            ],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "http11-probe-server",
            dependencies: ["Sockets", "HTTPServer", "HTTPClient", "TestSupport"],
            path: "Tests/Http11ProbeServer",
            exclude: ["README.md"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "embedding-host",
            dependencies: ["KeySets", "OpenSSL"],
            path: "Tests/EmbeddingHost",
            swiftSettings: strict
        ),
        .testTarget(name: "BytesTests", dependencies: ["Bytes"], swiftSettings: strict),
        .testTarget(name: "OpenSSLTests", dependencies: ["OpenSSL", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "JOSETests",
            dependencies: ["JOSE", "OpenSSL", "Bytes", "StandInIssuer", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LimitedLoginTests",
            dependencies: ["LimitedLogin", "JOSE", "OpenSSL", "Bytes", "StandInIssuer", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(name: "HTTP1Tests", dependencies: ["HTTP1", "Bytes", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "SocketsTests", dependencies: ["Sockets"], swiftSettings: strict),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: ["HTTPServer", "Sockets", "HTTP1", "OpenSSL", "Bytes", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "HTTPClientTests",
            dependencies: ["HTTPClient", "HTTPServer", "Sockets", "OpenSSL", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "KeySetsTests",
            dependencies: [
                "KeySets", "JOSE", "OpenSSL", "Sockets", "HTTPServer", "HTTPClient", "Bytes", "StandInIssuer",
                "TestSupport",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "GraphTests",
            dependencies: ["Graph", "OpenSSL", "Sockets", "HTTPClient", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LoginStoresTests",
            dependencies: ["LoginStores", "OpenSSL", "Sockets", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "VerificationServiceTests",
            dependencies: [
                "VerificationService", "LimitedLogin", "KeySets", "Graph", "LoginStores", "HTTP1", "Sockets",
                "HTTPServer", "HTTPClient",
                "JOSE", "OpenSSL", "Bytes", "StandInIssuer", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "VerificationService", "LimitedLogin", "JOSE", "OpenSSL", "HTTP1", "HTTPServer", "Bytes",
                "StandInIssuer", "TestSupport",
            ],
            exclude: ["Differential"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "limited-login", "embedding-host", "JOSE", "OpenSSL", "Sockets", "HTTPServer", "StandInIssuer",
                "TestSupport",
            ],
            swiftSettings: strict
        ),
    ]
)

/// The instruments of `Tests/Benchmarks`, in the same build as what they measure: small C programs that cost next to
/// nothing themselves, and the stages of a request taken apart.
if Context.environment["BUILD_BENCHMARKS"] != nil {
    let sources = "Tests/Benchmarks/Sources"
    package.products.append(.library(name: "AllocationCounter", type: .dynamic, targets: ["AllocationCounter"]))
    package.targets += [
        .target(name: "AllocationCounter", path: "\(sources)/AllocationCounter"),
        .executableTarget(name: "load-generator", path: "\(sources)/load-generator"),
        .executableTarget(
            name: "bare-verify",
            path: "\(sources)/bare-verify",
            linkerSettings: [.linkedLibrary("crypto")]
        ),
        .executableTarget(
            name: "least-server",
            path: "\(sources)/least-server",
            linkerSettings: [.linkedLibrary("crypto")]
        ),
        .executableTarget(
            name: "stages",
            dependencies: [
                "VerificationService", "LimitedLogin", "KeySets", "LoginStores", "HTTP1", "Sockets", "HTTPServer",
                "JOSE", "OpenSSL", "Bytes", .product(name: "Logging", package: "swift-log"),
            ],
            path: "\(sources)/stages",
            swiftSettings: strict
        ),
    ]
}

/// The programs of `Tests/Fuzzing`. The fuzzer has to see every branch of what it drives, so all is compiled for it, in a
/// folder of its own.
if Context.environment["BUILD_FUZZERS"] != nil {
    let sanitized = "-sanitize=fuzzer,address"
    let programs: [(name: String, dependencies: [Target.Dependency])] = [
        ("fuzz", ["JOSE", "LimitedLogin", "LoginStores", "OpenSSL", "Bytes"]),
        ("fuzz-http", ["HTTP1", "HTTPServer", "HTTPClient", "Sockets", "TestSupport", "Bytes"]),
        (
            "fuzz-service",
            [
                "VerificationService", "StandInIssuer", "KeySets", "LimitedLogin", "JOSE", "Sockets", "HTTPServer",
                "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]
        ),
    ]
    for target in package.targets { target.swiftSettings?.append(.unsafeFlags([sanitized, "-enable-testing"])) }
    package.targets.append(.systemLibrary(name: "CLibFuzzer", path: "Tests/Fuzzing/Sources/CLibFuzzer"))
    package.targets += programs.map { program in
        .executableTarget(
            name: program.name,
            dependencies: ["CLibFuzzer"] + program.dependencies,
            path: "Tests/Fuzzing/Sources/\(program.name)",
            swiftSettings: strict + [.unsafeFlags([sanitized, "-enable-testing"])],
            linkerSettings: [.unsafeFlags([sanitized, "-use-ld=lld"])]
        )
    }
}

// Only who builds the documentation needs the plugin:
// BUILD_DOCUMENTATION=1 swift package generate-documentation --target LimitedLogin
if Context.environment["BUILD_DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0"))
}
