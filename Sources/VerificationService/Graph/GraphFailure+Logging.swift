internal import Graph
internal import Logging

extension GraphFailure {
    /// Adds what an operator can do something with: Graph's numbers and Facebook's name of the call. Its own message may
    /// name people, so it is left out.
    func describe(in facts: inout Logger.Metadata) {
        if let code { facts["graph_code"] = "\(code)" }
        if let subcode { facts["graph_subcode"] = "\(subcode)" }
        if let traceID { facts["fbtrace_id"] = "\(traceID)" }
        if let reason { facts["reason"] = "\(reason)" }
    }
}
