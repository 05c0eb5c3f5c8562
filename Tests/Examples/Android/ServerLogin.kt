package com.example.login

import com.facebook.AccessToken
import com.facebook.CallbackManager
import com.facebook.FacebookCallback
import com.facebook.FacebookException
import com.facebook.login.LoginManager
import com.facebook.login.LoginResult
import java.net.HttpURLConnection
import java.net.URL

/**
 * The app's side of a login that a server verifies: Facebook's dialog, and the access token to the server.
 *
 * An Android login always yields an access token. It has an id token (`LoginResult.authenticationToken`) after the very
 * first authorization alone, so the access token is what to send.
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

    /** Opens the dialog; `done` is called on the main thread or, where the server was asked, on the thread of `background`. */
    fun logIn(manager: LoginManager, open: (LoginManager) -> Unit, background: (() -> Unit) -> Unit, done: (Outcome) -> Unit) {
        manager.registerCallback(callbacks, object : FacebookCallback<LoginResult> {
            override fun onSuccess(result: LoginResult) = background { done(send(result.accessToken)) }
            override fun onCancel() = done(Outcome.Cancelled)
            override fun onError(error: FacebookException) = done(Outcome.TryAgain(error.toString()))
        })
        open(manager)
    }

    /** The token goes to the server as `access_token`; it is opaque, so neither the app nor the server decodes it. */
    private fun send(token: AccessToken): Outcome {
        val connection = URL("$server/login").openConnection() as HttpURLConnection
        return try {
            connection.requestMethod = "POST"
            connection.doOutput = true
            connection.setRequestProperty("Content-Type", "application/json")
            connection.outputStream.use { it.write("{\"access_token\": \"${token.token}\"}".toByteArray()) }
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
