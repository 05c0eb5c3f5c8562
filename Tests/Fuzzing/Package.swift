// swift-tools-version: 6.2
import PackageDescription

/// Fuzz targets, a package of their own: each is an executable around libFuzzer's main. The sources under test are
/// linked into this package, so that their `package` declarations are in reach.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// No entry point of its own: libFuzzer brings one.
let fuzzer: [SwiftSetting] = strict + [.unsafeFlags(["-parse-as-library"])]

let package = Package(
    name: "fuzzing",
    targets: [
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
        .target(name: "CPlatform"),
        .target(name: "OpenSSL", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "HTTP1", swiftSettings: strict),
        .target(name: "Networking", dependencies: ["CPlatform", "HTTP1", "OpenSSL"], swiftSettings: strict),
        .target(name: "HTTPFuzzing", dependencies: ["HTTP1", "Networking"], swiftSettings: strict),
        .executableTarget(
            name: "fuzz-http-request",
            dependencies: ["HTTP1", "HTTPFuzzing"],
            swiftSettings: fuzzer
        ),
        .executableTarget(
            name: "fuzz-http-connection",
            dependencies: ["HTTP1", "Networking", "HTTPFuzzing"],
            swiftSettings: fuzzer
        ),
    ]
)
