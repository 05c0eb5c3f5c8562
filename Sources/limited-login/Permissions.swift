internal import ArgumentParser
internal import LLBytes
internal import LLService
internal import LimitedLogin

struct Permissions: ParsableCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "permissions",
        abstract: "Lists or revokes a person's permissions.",
        discussion: exitCodes,
        subcommands: [List.self, Revoke.self]
    )

    private static let exitCodes = """
        Needs app_secrets_file. Exit code 0 done, 1 Graph refuses, 3 Graph cannot be asked now (out of reach, out of \
        service or asked too often), 64 usage, 78 configuration.
        """

    static func settings(of all: Settings) -> [any AnySetting] {
        [all.appIDs, all.appSecretsFile, all.graphURL, all.graphVersion, all.caFile]
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists a person's granted, declined and expired permissions.",
            discussion: exitCodes
        )

        @OptionGroup var person: PersonOptions

        @Option(help: "The permissions the app needs, separated by commas: tells which to ask for, and which not.")
        var need: String?

        @Flag(help: "Print one JSON object, as the service would answer.")
        var json = false

        @OptionGroup var options: ConfigurationOptions<Permissions>

        func run() throws {
            let (user, app, client) = try person.graph(options)
            let needed = try need?.split(separator: ",", omittingEmptySubsequences: false)
                .map { try validated(String($0)) }
            let permissions = try client.permissions(of: user, app: app)
            if json {
                let answer = JSON { permissions.write(user: user, appID: app.appID, needed: needed, to: &$0) }
                return StandardOutput.write(json: answer)
            }
            var lists = [
                ("granted", permissions.granted), ("declined", permissions.declined), ("expired", permissions.expired),
            ]
            if let needed {
                lists.append(("worth asking for", permissions.missing(among: needed, ofLimitedLogin: true)))
                lists.append(("needed but declined", permissions.declined(among: needed)))
                let outside = permissions.missing(among: needed, ofLimitedLogin: false)
                lists.append(("not for Limited Login to ask", outside))
            }
            for (title, names) in lists {
                let text = names.isEmpty ? "none" : names.joined(separator: ", ")
                StandardOutput.write(line: "\(title): \(text)")
            }
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "revoke",
            abstract: "Revokes one permission of a person, or with --login the whole login.",
            discussion: exitCodes
        )

        @OptionGroup var person: PersonOptions

        @Argument(help: "The permission to revoke.")
        var permission: String?

        @Flag(help: "Revoke the whole login: the person has to log in to the app anew.")
        var login = false

        @OptionGroup var options: ConfigurationOptions<Permissions>

        func validate() throws {
            // A forgotten word must not end a person's login.
            guard (permission != nil) != login else { throw ValidationError("Give a permission, or --login.") }
        }

        func run() throws {
            let (user, app, client) = try person.graph(options)
            let permission = try permission.map(validated)
            try client.revoke(permission, of: user, app: app)
            StandardOutput.write(line: "revoked: \(permission ?? "the login")")
        }
    }
}

struct PersonOptions: ParsableArguments {
    @Argument(help: "The person's app-scoped id: the claim sub.")
    var userID: String

    @Option(help: "The app; needed if several are configured.")
    var appID: String?

    func validate() throws { _ = try user() }

    private func user() throws -> GraphUserID {
        guard let user = GraphUserID(userID) else {
            throw ValidationError("'\(userID)' is no user id; they are \(GraphUserID.shape).")
        }
        return user
    }

    func graph(_ options: ConfigurationOptions<Permissions>) throws -> (
        user: GraphUserID, app: AppSecret, client: GraphClient
    ) {
        let (configuration, app) = try app(options)
        return (try user(), app, try ServiceFactory.graphClient(configuration))
    }

    func app<Scope>(_ options: ConfigurationOptions<Scope>) throws -> (ServiceConfiguration, AppSecret) {
        let (configuration, secrets) = try options.loadWithAppSecrets()
        do throws(AppSecrets.Missing) {
            return (configuration, try secrets.secret(of: appID.map { Array($0.utf8) }))
        } catch {
            switch error {
            case .unnamed: throw ValidationError("Several apps are configured; name one with --app-id.")
            case .unknown: throw ValidationError("The app of --app-id is not configured.")
            case .noSecret: throw Exit.refusing("app_secrets_file has no secret of the app")
            }
        }
    }
}

private func validated(_ name: String) throws -> String {
    guard PermissionName.isValid(name) else {
        throw ValidationError("'\(name)' is no permission; a name is \(PermissionName.shape).")
    }
    return name
}

extension GraphFailure {
    /// Tells the failure on standard error; the result is the program's exit code.
    func told() -> ExitCode {
        problem.write()
        let mayBeAnsweredLater =
            [.graphUnreachable, .graphTimedOut, .graphTLSFailed].contains(error) || error.isTransient
            || error.isThrottling
        return mayBeAnsweredLater ? Exit.unavailable : Exit.rejected
    }
}

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Says what an error of Facebook means, and what helps.",
        subcommands: [OfGraph.self]
    )

    struct OfGraph: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "graph-error",
            abstract: "Explains an error that the Graph API answered.",
            discussion: "Exit code 0 done, 64 usage, or a text that is no error of Graph."
        )

        @Argument(help: "Graph's answer, a JSON object with the member error, or - to read it from standard input.")
        var answer: String

        func run() throws {
            let text = try TokenInput.read(argument: answer, file: nil)
            guard let advice = GraphErrorAdvice(json: text) else {
                throw ValidationError("The text is no error of Graph: a JSON object with error and its code is needed.")
            }
            StandardOutput.write(line: "\(advice.remedy.rawValue): \(advice.cause)  (\(advice.name))")
        }
    }
}
