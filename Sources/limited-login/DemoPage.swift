internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStandIn
internal import LimitedLogin
internal import LimitedLoginKeys

/// The page of `demo`: plays logins as an app and its backend would, with the running service.
struct DemoPage: PageBackend {
    let issuer: StandInIssuer
    let client = HTTPSClient()
    private let running = Locked<Application?>(nil)

    func open(_ application: Application) { running.withLock { $0 = application } }

    func state() -> JSON {
        let published = issuer.keys.published.map(\.keyID)
        let application = running.withLock { $0 }
        let cached = application?.core.cache.snapshot.keySet.keys.map(\.keyID) ?? []
        let outage = issuer.conditions.withLock(\.outageEnd).nanoseconds(since: MonotonicClock.now())
        let isAway = outage > 0
        let service = application?.ownAddress.map(\.description) ?? "starting"
        let faults = CatalogueEntry.all.filter { $0.setting == nil }
        let scenarios = DemoScenario.all.filter { $0.whileAway == nil || $0.whileAway == isAway }
        return [
            "mode": "demo",
            "place": "Demonstration: the service on \(service), Facebook played on this machine",
            "keys": JSON(
                "Facebook \(isAway ? "answers 503 and publishes no key" : "publishes \(Self.names(of: published))"). "
                    + "The service has \(Self.names(of: cached))."
            ),
            "away_seconds": isAway ? JSON(outage / 1_000_000_000 + 1) : nil,
            "app_id": JSON(Demo.appID),
            "permissions": "email, user_birthday, user_location",
            "checks": Self.checks(),
            "scenarios": JSON(
                scenarios.map {
                    [
                        "name": JSON($0.name), "title": JSON($0.title), "hint": JSON($0.hint),
                        "expects": JSON($0.expects),
                    ]
                }
            ),
            "changing": JSON(DemoScenario.all.filter(\.changesFacebook).map { JSON($0.name) }),
            "faults": JSON(faults.map { ["name": JSON($0.name), "fault": JSON($0.fault)] }),
        ]
    }

    func run(_ body: [UInt8]) throws(PageRefusal) -> JSON {
        guard let application = running.withLock({ $0 }) else {
            throw PageRefusal(sentence: "The service is still starting; try again.")
        }
        guard let wish = JSONObject(body), let name = wish.string("scenario") else {
            throw PageRefusal(sentence: "The body must be a JSON object with a scenario.")
        }
        guard let play = DemoScenario.play(named: name) else {
            throw PageRefusal(sentence: "There is no scenario \(name.debugDescription).")
        }
        let appID = wish.string("app_id") ?? ""
        var scenario = ScenarioRun(
            demo: self,
            application: application,
            appID: appID.isEmpty ? Demo.appID : appID,
            nonce: wish.string("nonce") ?? "",
            permissions: wish.member("permissions").map { wish.strings($0) } ?? []
        )
        do {
            try play(&scenario)
            return try scenario.outcome()
        } catch let refusal as PageRefusal {
            throw refusal
        } catch { throw PageRefusal(sentence: "This could not be played: \(error).") }
    }
}

struct DemoScenario: Sendable {
    let name: String
    let title: String
    let hint: String
    /// The service's answer: a status, and for a refusal its code.
    let expects: String
    /// True: offered only while Facebook's keys are away; false: only while they are available; nil: always.
    var whileAway: Bool?
    /// True if the scenario changes the stand-in for later requests; a link or a reload must not play it.
    var changesFacebook = false
    let play: @Sendable (inout ScenarioRun) throws -> Void

    static func play(named name: String) -> (@Sendable (inout ScenarioRun) throws -> Void)? {
        if name.hasPrefix("fault:"), let entry = CatalogueEntry.named(String(name.dropFirst("fault:".count))) {
            return { try $0.login(entry) }
        }
        return all.first { $0.name == name }?.play
    }

    private static func fault(_ name: String, _ title: String, _ hint: String? = nil) -> DemoScenario? {
        CatalogueEntry.named(name).map { entry in
            let expects = entry.code.map { "401 \($0)" } ?? "200"
            return DemoScenario(name: name, title: title, hint: hint ?? entry.fault, expects: expects) {
                try $0.login(entry)
            }
        }
    }

    static let all: [DemoScenario] =
        [
            fault("good", "A good login", "The backend sends the token and its session's nonce; one call checks both."),
            DemoScenario(
                name: "stolen",
                title: "A stolen token",
                hint: "A thief's session presents the token first and is refused; its owner still logs in.",
                expects: "401, then 200"
            ) { try $0.loseToken() },
            fault("expired", "Expired"), fault("other-app", "Another app's"),
            fault("other-login", "Another login's nonce"), fault("changed", "One byte changed"),
            fault("unknown-key", "An unknown key"),
        ].compactMap { $0 } + plays

    private static let plays: [DemoScenario] = [
        DemoScenario(
            name: "again",
            title: "The nonce again",
            hint: "The same request is sent twice; a nonce of the service is good once.",
            expects: "401 nonce_used"
        ) { scenario in
            scenario.nonce = ""
            try scenario.login()
            try scenario.verifyAgain("The same request comes a second time.")
        },
        DemoScenario(
            name: "refresh",
            title: "Refresh",
            hint: "The SDK refreshes the token; the backend sends the new one with the session's person.",
            expects: "200"
        ) { scenario in
            scenario.nonce = ""
            try scenario.login()
            try scenario.refresh()
        },
        DemoScenario(
            name: "revoke",
            title: "Revoke the login",
            hint: "The backend ends all logins of a person; the token that was good is refused from then on.",
            expects: "401 login_revoked"
        ) { scenario in
            scenario.takeSomebodyElse()
            try scenario.login()
            try scenario.revoke()
            try scenario.verifyAgain("The token comes again, after the revocation.")
        },
        DemoScenario(
            name: "deletion",
            title: "Data deletion",
            hint: "A person has Facebook ask for the deletion of their data; the backend is told, and the login ends.",
            expects: "401 login_revoked"
        ) { scenario in
            scenario.takeSomebodyElse()
            try scenario.login()
            try scenario.requestDeletion()
            try scenario.verifyAgain("The token comes again, after the request.")
        },
        DemoScenario(
            name: "android",
            title: "Android's token",
            hint: "The token says nothing by itself; the service asks Facebook's Graph whose and which app's it is.",
            expects: "200"
        ) { try $0.accessToken() },
        DemoScenario(
            name: "own-token",
            title: "A token of your own",
            hint: "The login is exchanged for a standard token, which passes a gateway until the logins are revoked.",
            expects: "401 login_revoked"
        ) { scenario in
            scenario.takeSomebodyElse()
            let token = try scenario.exchange()
            try scenario.passGateway(token, "A gateway asks before it lets the app's request pass.")
            try scenario.revoke()
            try scenario.passGateway(token, "The token comes again, after the revocation.")
        },
        DemoScenario(
            name: "rotate",
            title: "Rotate the keys",
            hint: "Facebook signs with a new key; the service fetches it when the first token names it.",
            expects: "200",
            changesFacebook: true
        ) { scenario in
            _ = try scenario.facebook("/rotate")
            scenario.note("new key", "", "Facebook makes a new signing key and keeps the last one published.")
            try scenario.login()
        },
        DemoScenario(
            name: "away",
            title: "Take Facebook away",
            hint: "For 60 s Facebook's key address answers 503; the service carries on with the keys it has.",
            expects: "200",
            whileAway: false,
            changesFacebook: true
        ) { scenario in
            // The outage ends by itself if the page that began it is gone.
            scenario.demo.issuer.beginOutage(.seconds(60))
            scenario.note("GET jwks", "503", "Facebook's key address answers 503 for 60 s; logging in still works.")
            try scenario.login()
        },
        DemoScenario(
            name: "back",
            title: "Bring Facebook back",
            hint: "Facebook's key address answers again.",
            expects: "200",
            whileAway: true,
            changesFacebook: true
        ) { scenario in
            scenario.demo.issuer.beginOutage(.zero)
            scenario.note("GET jwks", "200", "Facebook's key address answers again.")
            try scenario.login()
        },
    ]
}
