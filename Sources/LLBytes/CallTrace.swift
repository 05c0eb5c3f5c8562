/// The trace context of the incoming request that caused this call.
package enum CallTrace {
    /// The `traceparent` (W3C Trace Context, section 3.2) that each request of this thread passes on; nil for calls
    /// that no incoming request caused. The service records no span of its own, so the value stays unchanged (section
    /// 3.3).
    @TaskLocal package static var parent: String?
}
