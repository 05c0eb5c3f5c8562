// swift-tools-version: 6.2.3
import PackageDescription

/// The settings of every target, applied at the end. A comment names the proposal behind each.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
    .strictMemorySafety(),  // SE-0458
    .treatAllWarnings(as: .error),  // SE-0480
]

/// The condition of the packages that only the program needs. A package that embeds the libraries resolves none of them.
let service = TargetDependencyCondition.when(traits: ["Service"])

let package = Package(
    name: "limited-login",
    // InlineArray and the spans of a String's bytes need it.
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
        .target(name: "CLLOpenAPI", exclude: ["openapi.json"]),
        .target(name: "CLLPage", exclude: ["page.html", "page.css", "page.js", "icon.svg"]),
        .target(name: "LLBytes"),
        .target(name: "LLCrypto", dependencies: ["CLLOpenSSL", "LLBytes"]),
        .target(name: "LLJOSE", dependencies: ["LLBytes"]),
        .target(name: "LimitedLogin", dependencies: ["LLJOSE", "LLCrypto", "LLBytes"]),
        .target(name: "LLHTTP1", dependencies: ["LLBytes"]),
        .target(name: "LLSockets", dependencies: ["CLLSystem", "CLLOpenSSL", "LLCrypto", "LLBytes"]),
        .target(name: "LLHTTPServer", dependencies: ["LLSockets", "LLHTTP1", "LLCrypto", "LLBytes"]),
        .target(name: "LLHTTPClient", dependencies: ["LLSockets", "LLHTTP1", "LLCrypto", "LLBytes"]),
        .target(name: "LimitedLoginKeys", dependencies: ["LLJOSE", "LLCrypto", "LLBytes"]),
        .target(name: "LimitedLoginHTTPS", dependencies: ["LimitedLoginKeys", "LLSockets", "LLHTTPClient"]),
        .target(name: "LimitedLoginTesting", dependencies: ["LimitedLogin", "LLJOSE", "LLCrypto", "LLBytes"]),
        .target(name: "LLGraph", dependencies: ["LLJOSE", "LLCrypto", "LLSockets", "LLHTTPClient", "LLBytes"]),
        .target(name: "LLStores", dependencies: ["LLCrypto", "LLSockets", "LLBytes"]),
        .target(
            name: "LLStandIn",
            dependencies: [
                "LimitedLoginTesting", "LLJOSE", "LLCrypto", "LLHTTP1", "LLSockets", "LLHTTPServer", "LLHTTPClient",
                "LLBytes",
            ]
        ),
        .target(
            name: "LLService",
            dependencies: [
                "CLLOpenAPI", "LimitedLogin", "LimitedLoginKeys", "LLGraph", "LLStores", "LLHTTP1", "LLSockets",
                "LLHTTPServer",
                "LLHTTPClient", "LLJOSE",
                "LLCrypto", "LLBytes",
                .product(name: "Logging", package: "swift-log", condition: service),
            ]
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
            ]
        ),
        .target(name: "CLLTestProcess", path: "Tests/CLLTestProcess"),
        .target(
            name: "LLTestSupport",
            dependencies: [
                "CLLTestProcess", "CLLOpenSSL", "LLJOSE", "LLCrypto", "LLHTTP1", "LLSockets", "LLHTTPServer",
                "LLHTTPClient",
                "LimitedLogin", "LLStandIn", "LLBytes",
            ],
            path: "Tests/LLTestSupport"
        ),
        .executableTarget(
            name: "http11-probe-server",
            dependencies: ["LLSockets", "LLHTTPServer", "LLHTTPClient", "LLTestSupport"],
            path: "Tests/Http11ProbeServer",
            exclude: ["README.md"]
        ),
        .executableTarget(
            name: "embedding-host",
            dependencies: ["LimitedLoginKeys", "LLCrypto", "LLSockets"],
            path: "Tests/EmbeddingHost"
        ),
        .testTarget(name: "LLBytesTests", dependencies: ["LLBytes"]),
        .testTarget(name: "LLCryptoTests", dependencies: ["LLCrypto", "LLTestSupport"]),
        .testTarget(
            name: "LLJOSETests",
            dependencies: ["LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport"]
        ),
        .testTarget(
            name: "LimitedLoginTests",
            dependencies: ["LimitedLogin", "LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport"]
        ),
        .testTarget(name: "LLHTTP1Tests", dependencies: ["LLHTTP1", "LLBytes", "LLTestSupport"]),
        .testTarget(name: "LLSocketsTests", dependencies: ["LLSockets", "LLCrypto", "LLTestSupport"]),
        .testTarget(
            name: "LLHTTPServerTests",
            dependencies: ["LLHTTPServer", "LLSockets", "LLHTTP1", "LLCrypto", "LLBytes", "LLTestSupport"]
        ),
        .testTarget(
            name: "LLHTTPClientTests",
            dependencies: ["LLHTTPClient", "LLHTTPServer", "LLSockets", "LLCrypto", "LLTestSupport"]
        ),
        .testTarget(
            name: "LimitedLoginKeysTests",
            dependencies: [
                "LimitedLoginKeys", "LimitedLoginHTTPS", "LLJOSE", "LLCrypto", "LLSockets", "LLHTTPServer",
                "LLHTTPClient",
                "LLBytes", "LLStandIn",
                "LLTestSupport",
            ]
        ),
        .testTarget(
            name: "LLGraphTests",
            dependencies: ["LLGraph", "LLCrypto", "LLSockets", "LLHTTPClient", "LLTestSupport"]
        ),
        .testTarget(name: "LLStoresTests", dependencies: ["LLStores", "LLCrypto", "LLSockets", "LLTestSupport"]),
        .testTarget(
            name: "LLServiceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LLGraph", "LLStores", "LLHTTP1",
                "LLSockets", "LLHTTPServer", "LLHTTPClient",
                "LLJOSE", "LLCrypto", "LLBytes", "LLStandIn", "LLTestSupport",
                .product(name: "Logging", package: "swift-log", condition: service),
            ]
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LLJOSE", "LLCrypto", "LLHTTP1", "LLHTTPServer", "LLBytes",
                "LLStandIn", "LLTestSupport",
            ],
            exclude: ["Differential"]
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "limited-login", "embedding-host", "LLJOSE", "LLCrypto", "LLSockets", "LLHTTPServer", "LLStandIn",
                "LLTestSupport",
            ]
        ),
    ]
)

/// The instruments of `Tests/Benchmarks`, in the same build as the measured code: small C programs that cost almost
/// nothing themselves, and a program that runs the stages of a request apart.
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
            path: "\(sources)/stages"
        ),
    ]
}

/// The programs of `Tests/Fuzzing`. The fuzzer has to see every branch, so every target is instrumented, in a build
/// folder of its own.
if Context.environment["LIMITED_LOGIN_BUILD_FUZZERS"] != nil {
    let sanitized = "-sanitize=fuzzer,address"
    let instrumented: [SwiftSetting] = [.unsafeFlags([sanitized, "-enable-testing"])]
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
    for target in package.targets where target.type != .system { target.swiftSettings = instrumented }
    package.targets.append(.systemLibrary(name: "CLibFuzzer", path: "Tests/Fuzzing/Sources/CLibFuzzer"))
    package.targets += programs.map { program in
        .executableTarget(
            name: program.name,
            dependencies: ["CLibFuzzer"] + program.dependencies,
            path: "Tests/Fuzzing/Sources/\(program.name)",
            swiftSettings: instrumented,
            linkerSettings: [.unsafeFlags([sanitized, "-use-ld=lld"])]
        )
    }
}

/// Only the tests of functions, requests and sockets, for the address sanitizer. The programs and their tests, the many
/// mutations and the tests of `LimitedLogin`, which has no unsafe memory, are not compiled.
if Context.environment["LIMITED_LOGIN_BUILD_NO_PROGRAMS"] != nil {
    package.products.removeAll { $0.name == "limited-login" }
    let others = ["EndToEndTests", "ConformanceTests", "LimitedLoginTests"]
    package.targets.removeAll { $0.type == .executable || others.contains($0.name) }
}

for target in package.targets where target.type != .system {
    target.swiftSettings = strict + (target.swiftSettings ?? [])
}

// Only a build of the documentation needs the plugin:
// LIMITED_LOGIN_BUILD_DOCUMENTATION=1 swift package generate-documentation --target LimitedLogin
if Context.environment["LIMITED_LOGIN_BUILD_DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0"))
}
