// swift-tools-version: 6.2
import PackageDescription

/// The instruments of the benchmark, each a small C program so that it costs next to nothing itself. `run` beside this
/// file builds them and the service, measures, and prints the table.
let package = Package(
    name: "benchmarks",
    products: [
        .executable(name: "load-generator", targets: ["load-generator"]),
        .executable(name: "bare-verify", targets: ["bare-verify"]),
        .library(name: "AllocationCounter", type: .dynamic, targets: ["AllocationCounter"]),
    ],
    targets: [
        .executableTarget(name: "load-generator"),
        .executableTarget(name: "bare-verify", linkerSettings: [.linkedLibrary("crypto")]),
        .target(name: "AllocationCounter"),
    ]
)
