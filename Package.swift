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
        .library(name: "LimitedLoginKeys", targets: ["LimitedLoginKeys"]),
        .library(name: "LimitedLoginHTTPS", targets: ["LimitedLoginHTTPS"]),
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
        .target(
            name: "CLLDocuments",
            exclude: ["openapi.json", "page.html", "page.css", "page.js", "icon.svg"],
            // The commit of a state between two versions; it comes by the environment, so that no commit costs a build.
            cSettings: [
                .define("LIMITED_LOGIN_COMMIT", to: "\"\(Context.environment["LIMITED_LOGIN_COMMIT"] ?? "")\"")
            ]
        ),
        .target(name: "LLBytes"),
        .target(name: "LLJOSE", dependencies: ["CLLOpenSSL", "LLBytes"]),
        .target(name: "LimitedLogin", dependencies: ["LLJOSE", "LLBytes"]),
        .target(name: "LLHTTP", dependencies: ["CLLSystem", "CLLOpenSSL", "LLJOSE", "LLBytes"]),
        .target(name: "LimitedLoginKeys", dependencies: ["LLJOSE", "LLBytes"]),
        .target(name: "LimitedLoginHTTPS", dependencies: ["LimitedLoginKeys", "LLHTTP"]),
        .target(name: "LimitedLoginTesting", dependencies: ["LimitedLogin", "LLJOSE", "LLBytes"]),
        .target(name: "LLStores", dependencies: ["LLJOSE", "LLHTTP", "LLBytes"]),
        .target(name: "LLStandIn", dependencies: ["LimitedLoginTesting", "LLJOSE", "LLHTTP", "LLBytes"]),
        .target(
            name: "LLService",
            dependencies: [
                "CLLDocuments", "LimitedLogin", "LimitedLoginKeys", "LLStores", "LLHTTP", "LLJOSE", "LLBytes",
                .product(name: "Logging", package: "swift-log", condition: service),
            ]
        ),
        .executableTarget(
            name: "limited-login",
            dependencies: [
                "CLLDocuments", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LLStores", "LLHTTP", "LLJOSE",
                "LLBytes", "LLService", "LLStandIn",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: service),
                .product(name: "Logging", package: "swift-log", condition: service),
            ]
        ),
        .target(name: "CLLTestProcess", path: "Tests/CLLTestProcess"),
        .target(
            name: "LLTestSupport",
            dependencies: [
                "CLLTestProcess", "CLLOpenSSL", "LLJOSE", "LLHTTP", "LimitedLogin", "LLStandIn", "LLBytes",
            ],
            path: "Tests/LLTestSupport"
        ),
        .executableTarget(
            name: "http11-probe-server",
            dependencies: ["LLHTTP", "LLTestSupport"],
            path: "Tests/Http11ProbeServer",
            exclude: ["README.md"]
        ),
        .executableTarget(
            name: "embedding-host",
            dependencies: ["LimitedLoginKeys", "LLJOSE", "LLHTTP"],
            path: "Tests/EmbeddingHost"
        ),
        .testTarget(name: "LLBytesTests", dependencies: ["LLBytes"]),
        .testTarget(name: "LLCryptoTests", dependencies: ["CLLOpenSSL", "LLJOSE", "LLTestSupport"]),
        .testTarget(
            name: "LLJOSETests",
            dependencies: ["LLJOSE", "LLBytes", "LLStandIn", "LLTestSupport"]
        ),
        .testTarget(
            name: "LimitedLoginTests",
            dependencies: ["LimitedLogin", "LLJOSE", "LLBytes", "LLStandIn", "LLTestSupport"]
        ),
        .testTarget(name: "LLHTTP1Tests", dependencies: ["LLHTTP", "LLBytes", "LLTestSupport"]),
        .testTarget(name: "LLSocketsTests", dependencies: ["LLHTTP", "LLJOSE", "LLTestSupport"]),
        .testTarget(
            name: "LLHTTPServerTests",
            dependencies: ["LLHTTP", "LLJOSE", "LLBytes", "LLTestSupport"]
        ),
        .testTarget(
            name: "LLHTTPClientTests",
            dependencies: ["LLHTTP", "LLJOSE", "LLTestSupport"]
        ),
        .testTarget(
            name: "LimitedLoginKeysTests",
            dependencies: [
                "LimitedLoginKeys", "LimitedLoginHTTPS", "LLJOSE", "LLHTTP", "LLBytes", "LLStandIn", "LLTestSupport",
            ]
        ),
        .testTarget(
            name: "LLGraphTests",
            dependencies: ["LLService", "LimitedLogin", "LLJOSE", "LLHTTP", "LLBytes", "LLTestSupport"]
        ),
        .testTarget(name: "LLStoresTests", dependencies: ["LLStores", "LLJOSE", "LLHTTP", "LLTestSupport"]),
        .testTarget(
            name: "LLServiceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginHTTPS", "LLStores", "LLHTTP", "LLJOSE",
                "LLBytes", "LLStandIn", "LLTestSupport", "CLLTestProcess",
                .product(name: "Logging", package: "swift-log", condition: service),
            ]
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "LLService", "LimitedLogin", "LLJOSE", "LLHTTP", "LLBytes", "LLStandIn", "LLTestSupport",
            ],
            exclude: ["Differential"]
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "limited-login", "embedding-host", "LLJOSE", "LLHTTP", "LLStandIn", "LLTestSupport",
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
                "LLService", "LimitedLogin", "LimitedLoginKeys", "LLStores", "LLHTTP", "LLJOSE", "LLBytes",
                .product(name: "Logging", package: "swift-log", condition: service),
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
        ("fuzz", ["LLJOSE", "LimitedLogin", "LLStores", "LLBytes"]),
        ("fuzz-http", ["LLHTTP", "LLTestSupport", "LLBytes"]),
        (
            "fuzz-service",
            [
                "LLService", "LLStandIn", "LimitedLoginKeys", "LimitedLogin", "LLJOSE", "LLHTTP", "LLTestSupport",
                .product(name: "Logging", package: "swift-log", condition: service),
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
