package com.example.login

import com.facebook.CallbackManager
import com.facebook.FacebookCallback
import com.facebook.FacebookException
import com.facebook.login.LoginConfiguration
import com.facebook.login.LoginManager
import com.facebook.login.LoginResult
import java.net.CookieHandler
import java.net.CookieManager
import java.net.HttpURLConnection
import java.net.URL

/**
 * The app's side of a login that a server verifies. The app begins a login at the server, opens Facebook's dialog with the
 * server's nonce, and sends the token to the server with the login's id. The server's session holds the login, and its
 * cookie comes with each request. The nonce does not go back.
 *
 * The nonce ties an id token to the login, so the app sends the id token if there is one. Repeated logins through the
 * Facebook app often yield only an access token. It carries no nonce, so a thief of the token can log in with it. The server
 * accepts it only if you configured that (`access_tokens: accept`).
 */
class ServerLogin(private val server: String, private val callbacks: CallbackManager) {
    sealed class Outcome {
        /** The server's answer. */
        class LoggedIn(val session: String) : Outcome()
        object Cancelled : Outcome()
        /** The server refuses the token: have the person log in again. */
        class Refused(val status: Int) : Outcome()
        /** There is no verdict now: the person stays logged in or out, and the app tries again. */
        class TryAgain(val reason: String) : Outcome()
    }

    init {
        if (CookieHandler.getDefault() == null) CookieHandler.setDefault(CookieManager())
    }

    /**
     * Begins the login and opens the dialog: `open` calls `manager.logIn(activity, configuration)`. `background` runs a block off
     * the main thread, and `main` runs one on it; `done` is called on either.
     */
    fun logIn(
        manager: LoginManager, open: (LoginManager, LoginConfiguration) -> Unit, background: (() -> Unit) -> Unit, main: (() -> Unit) -> Unit,
        done: (Outcome) -> Unit,
    ) = background {
        val begun = post("login/begin", "{}")
        val login = member("login", begun)
        val nonce = member("nonce", begun)
        if (login == null || nonce == null) {
            done(if (begun is Outcome.LoggedIn) Outcome.TryAgain("no login was begun") else begun)
        } else {
            main {
                // The SDK always asks for `openid` too, and throws if the nonce is empty or holds a space.
                val configuration = LoginConfiguration(listOf("public_profile", "email"), nonce)
                manager.registerCallback(callbacks, object : FacebookCallback<LoginResult> {
                    override fun onSuccess(result: LoginResult) =
                        background { done(send(login, result)) }
                    override fun onCancel() = done(Outcome.Cancelled)
                    override fun onError(error: FacebookException) = done(Outcome.TryAgain(error.toString()))
                })
                open(manager, configuration)
            }
        }
    }

    private fun member(name: String, begun: Outcome): String? =
        (begun as? Outcome.LoggedIn)?.let { Regex("\"$name\"\\s*:\\s*\"([\\w-]+)\"").find(it.session)?.groupValues?.get(1) }

    /** Sends the token. The app decodes neither kind. */
    private fun send(login: String, result: LoginResult): Outcome {
        val idToken = result.authenticationToken?.token
        val credential = if (idToken != null) "id_token" to idToken else "access_token" to result.accessToken.token
        return post("login", "{\"login\": \"$login\", \"${credential.first}\": \"${credential.second}\"}")
    }

    private fun post(path: String, body: String): Outcome {
        val connection = URL("$server/$path").openConnection() as HttpURLConnection
        return try {
            connection.requestMethod = "POST"
            connection.doOutput = true
            connection.setRequestProperty("Content-Type", "application/json")
            connection.outputStream.use { it.write(body.toByteArray()) }
            when (val status = connection.responseCode) {
                200 -> Outcome.LoggedIn(connection.inputStream.use { it.readBytes().decodeToString() })
                in 400..428 -> Outcome.Refused(status)
                else -> Outcome.TryAgain("the server answered $status")
            }
        } catch (error: java.io.IOException) {
            Outcome.TryAgain(error.toString())
        } finally {
            connection.disconnect()
        }
    }
}
