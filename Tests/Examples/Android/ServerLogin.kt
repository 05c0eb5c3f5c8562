package com.example.login

import com.facebook.AccessToken
import com.facebook.CallbackManager
import com.facebook.FacebookCallback
import com.facebook.FacebookException
import com.facebook.login.LoginManager
import com.facebook.login.LoginResult
import java.net.CookieHandler
import java.net.CookieManager
import java.net.HttpURLConnection
import java.net.URL

/**
 * The app's side of a login that a server verifies: a login begun at the server, Facebook's dialog, and the access token to
 * the server with the login's id. The server's session holds the login, and its cookie comes with each request.
 *
 * An Android login always yields an access token. It has an id token (`LoginResult.authenticationToken`) after the very
 * first authorization alone, so the access token is what to send. It carries no nonce, so a thief of it has the login.
 */
class ServerLogin(private val server: String, private val callbacks: CallbackManager) {
    sealed class Outcome {
        /** What the server answered. */
        class LoggedIn(val session: String) : Outcome()
        object Cancelled : Outcome()
        /** The server refuses the token: have the person log in again. */
        class Refused(val status: Int) : Outcome()
        /** Nobody can tell now: the person stays as they are, and the app tries again. */
        class TryAgain(val reason: String) : Outcome()
    }

    init {
        if (CookieHandler.getDefault() == null) CookieHandler.setDefault(CookieManager())
    }

    /**
     * Begins the login and opens the dialog. `background` runs a block off the main thread, `main` on it; `done` is called on
     * either.
     */
    fun logIn(
        manager: LoginManager, open: (LoginManager) -> Unit, background: (() -> Unit) -> Unit, main: (() -> Unit) -> Unit,
        done: (Outcome) -> Unit,
    ) = background {
        val begun = post("login/begin", "{}")
        val login = (begun as? Outcome.LoggedIn)?.let { Regex("\"login\"\\s*:\\s*\"([\\w-]+)\"").find(it.session) }
        if (login == null) {
            done(if (begun is Outcome.LoggedIn) Outcome.TryAgain("no login was begun") else begun)
        } else {
            main {
                manager.registerCallback(callbacks, object : FacebookCallback<LoginResult> {
                    override fun onSuccess(result: LoginResult) =
                        background { done(send(login.groupValues[1], result.accessToken)) }
                    override fun onCancel() = done(Outcome.Cancelled)
                    override fun onError(error: FacebookException) = done(Outcome.TryAgain(error.toString()))
                })
                open(manager)
            }
        }
    }

    /** The token goes to the server as `access_token`; it is opaque, so neither the app nor the server decodes it. */
    private fun send(login: String, token: AccessToken): Outcome =
        post("login", "{\"login\": \"$login\", \"access_token\": \"${token.token}\"}")

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
