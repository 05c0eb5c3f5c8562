internal import LimitedLogin
internal import Networking

/// The wall clock, as far as verdicts need it.
enum ServiceClock {
    static func now() throws(Problem) -> NumericDate {
        guard let now = NumericDate(secondsSince1970: WallClock.unixSeconds()) else {
            throw Problem(.internalError, "This machine's clock stands before 1970.")
        }
        return now
    }
}
