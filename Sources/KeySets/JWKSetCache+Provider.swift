public import JOSE

/// A cache gives its keys to whoever judges tokens, such as `LimitedLogin.LoginVerifier`.
extension JWKSetCache: JSONWebKeySetProvider {}
