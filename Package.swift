// swift-tools-version: 6.2.3
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

/// What only the program needs: a package that embeds the libraries resolves none of it.
let service = TargetDependencyCondition.when(traits: ["Service"])

let package = Package(
    name: "limited-login",
    // InlineArray and the spans of a String's bytes.
    platforms: [.macOS(.v26)],
    products: [
        .library(name: "LimitedLogin", targets: ["LimitedLogin"]),
        .library(name: "LimitedLoginKeys", targets: ["LimitedLoginKeys", "LimitedLoginHTTPS"]),
        .library(name: "LimitedLoginTesting", targets: ["LimitedLoginTesting"]),
        .executable(name: "limited-login", targets: ["limited-login"]),
    ],
    traits: [
        .trait(
            name: "Service",
            description: "The program, and the packages that it alone needs. Users of the libraries give `traits: []`."
        ),
        .default(enabledTraits: ["Service"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .systemLibrary(
            name: "CLLOpenSSL",
            pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
        ),
        .target(name: "CLLSystem"),
        .target(name: "CLLThreads"),
        .target(name: "CLLOpenAPI", exclude: ["openapi.json"]),
        .target(name: "CLLPage", exclude: ["page.html", "page.css", "page.js", "icon.svg"]),
        .target(name: "LLBytes", swiftSettings: strict),
        .target(name: "LLThreads", dependencies: ["CLLThreads"], swiftSettings: strict),
        .target(name: "LLCrypto", dependencies: ["CLLOpenSSL", "LLBytes"], swiftSettings: strict),
        .target(name: "LLJOSE", dependencies: ["LLBytes"], swiftSettings: strict),
        .target(
            name: "LimitedLogin",
            dependencies: ["LLJOSE", "LLCrypto", "LLThreads", "LLBytes"],
            swiftSettings: strict
        ),
        .target(name: "LLHTTP1", dependencies: ["LLBytes"], swiftSettings: strict),
        .target(
            name: "LLSockets",
            dependencies: ["CLLSystem", "CLLOpenSSL", "LLCrypto", "LLThreads", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LLHTTPServer",
            dependencies: ["LLSockets", "LLHTTP1", "LLCrypto", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LLHTTPClient",
            dependencies: ["LLSockets", "LLHTTP1", "LLCrypto", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LimitedLoginKeys",
            dependencies: ["LLJOSE", "LLCrypto", "LLThreads"],
            swiftSettings: strict
        ),
        .target(
            name: "LimitedLoginHTTPS",
            dependencies: ["LimitedLoginKeys", "LLSockets", "LLHTTPClient"],
            swiftSettings: strict
        ),
        .target(
            name: "LLMint",
            dependencies: ["LimitedLogin", "LLJOSE", "LLCrypto", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LimitedLoginTesting",
            dependencies: ["LimitedLogin", "LLMint", "LLJOSE", "LLCrypto", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LLGraph",
            dependencies: ["LLJOSE", "LLCrypto", "LLSockets", "LLHTTPClient", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LLStores",
            dependencies: ["LLCrypto", "LLSockets", "LLBytes"],
            swiftSettings: strict
        ),
        .target(
            name: "LLStandIn",
            dependencies: [
                "LLMint", "LLJOSE", "LLCrypto", "LLHTTP1", "LLSockets", "LLHTTPServer", "LLHTTPClient", "LLBytes",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LLService",
            dependencies: [
                "CLLOpenAPI", "LimitedLogin", "LimitedLoginKeys", "LLGraph", "LLStores", "LLHTTP1", "LLSockets",
                "LLHTTPServer",
                "LLHTTPClient", "LLJOSE",
                "LLCrypto", "LLBytes",
                .product(name: "Logging", package: "swift-log", condition: service),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "limited-login",
            dependencies: [
                "LLCrypto", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LLGraph", "LLStores", "LLHTTP1",
                "LLSockets", "LLHTTPServer",
                "LLHTTPClient", "LLJOSE",
                "LLBytes", "LLService",
                "LLStandIn", "CLLPage",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: service),
                .product(name: "Logging", package: "swift-log", condition: service),
            ],
            swiftSettings: strict
        ),
        .target(name: "CLLTestProcess", path: "Tests/CLLTestProcess"),
        .target(
            name: "LLTestSupport",
            dependencies: [
                "CLLTestProcess", "CLLOpenSSL", "LLJOSE", "LLCrypto", "LLHTTP1", "LLSockets", "LLHTTPServer",
                "LLHTTPClient",
                "LimitedLogin", "LLStandIn", "LLBytes",
            ],
            path: "Tests/LLTestSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "http11-probe-server",
            dependencies: ["LLSockets", "LLHTTPServer", "LLHTTPClient", "LLTestSupport"],
            path: "Tests/Http11ProbeServer",
            exclude: ["README.md"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "embedding-host",
            dependencies: ["LimitedLoginKeys", "LLCrypto", "LLSockets"],
            path: "Tests/EmbeddingHost",
            swiftSettings: strict
        ),
        .testTarget(name: "LLBytesTests", dependencies: ["LLBytes"], swiftSettings: strict),
        .testTarget(name: "LLCryptoTests", dependencies: ["LLCrypto", "LLTestSupport"], swiftSettings: strict),
        .testTarget(
            name: "LLJOSETests",
            dependencies: ["LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LimitedLoginTests",
            dependencies: ["LimitedLogin", "LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLHTTP1Tests",
            dependencies: ["LLHTTP1", "LLBytes", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLSocketsTests",
            dependencies: ["LLSockets", "LLCrypto", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLHTTPServerTests",
            dependencies: ["LLHTTPServer", "LLSockets", "LLHTTP1", "LLCrypto", "LLBytes", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLHTTPClientTests",
            dependencies: ["LLHTTPClient", "LLHTTPServer", "LLSockets", "LLCrypto", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LimitedLoginKeysTests",
            dependencies: [
                "LimitedLoginKeys", "LimitedLoginHTTPS", "LLJOSE", "LLCrypto", "LLSockets", "LLHTTPServer",
                "LLHTTPClient",
                "LLBytes", "LLStandIn",
                "LLTestSupport",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLGraphTests",
            dependencies: ["LLGraph", "LLCrypto", "LLSockets", "LLHTTPClient", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLStoresTests",
            dependencies: ["LLStores", "LLCrypto", "LLSockets", "LLTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "LLServiceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LLGraph", "LLStores", "LLHTTP1",
                "LLSockets", "LLHTTPServer", "LLHTTPClient",
                "LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport",
                .product(name: "Logging", package: "swift-log", condition: service),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LLJOSE", "LLCrypto", "LLHTTP1", "LLHTTPServer", "LLBytes",
                "LLStandIn", "LLTestSupport",
            ],
            exclude: ["Differential"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "limited-login", "embedding-host", "LLJOSE", "LLCrypto", "LLSockets", "LLHTTPServer", "LLStandIn",
                "LLTestSupport",
            ],
            swiftSettings: strict
        ),
    ]
)

/// The instruments of `Tests/Benchmarks`, in the same build as what they measure: small C programs that cost next to
/// nothing themselves, and the stages of a request taken apart.
if Context.environment["LIMITED_LOGIN_BUILD_BENCHMARKS"] != nil {
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
                "LLService", "LimitedLogin", "LimitedLoginKeys", "LLStores", "LLHTTP1", "LLSockets", "LLHTTPServer",
                "LLJOSE", "LLCrypto", "LLBytes", .product(name: "Logging", package: "swift-log", condition: service),
            ],
            path: "\(sources)/stages",
            swiftSettings: strict
        ),
    ]
}

/// The programs of `Tests/Fuzzing`. The fuzzer has to see every branch of what it drives, so all is compiled for it, in a
/// folder of its own.
if Context.environment["LIMITED_LOGIN_BUILD_FUZZERS"] != nil {
    let sanitized = "-sanitize=fuzzer,address"
    let programs: [(name: String, dependencies: [Target.Dependency])] = [
        ("fuzz", ["LLJOSE", "LimitedLogin", "LLStores", "LLCrypto", "LLBytes"]),
        ("fuzz-http", ["LLHTTP1", "LLHTTPServer", "LLHTTPClient", "LLSockets", "LLTestSupport", "LLBytes"]),
        (
            "fuzz-service",
            [
                "LLService", "LLStandIn", "LimitedLoginKeys", "LimitedLogin", "LLJOSE", "LLSockets", "LLHTTPServer",
                "LLTestSupport", .product(name: "Logging", package: "swift-log", condition: service),
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

/// The tests of functions, requests and sockets alone, for the address sanitizer: neither the programs and their tests nor the
/// many mutations are compiled.
if Context.environment["LIMITED_LOGIN_BUILD_NO_PROGRAMS"] != nil {
    package.products.removeAll { $0.name == "limited-login" }
    package.targets.removeAll { $0.type == .executable || ["EndToEndTests", "ConformanceTests"].contains($0.name) }
}

// Only who builds the documentation needs the plugin:
// LIMITED_LOGIN_BUILD_DOCUMENTATION=1 swift package generate-documentation --target LimitedLogin
if Context.environment["LIMITED_LOGIN_BUILD_DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0"))
}
