// A login server. The app begins a login here, logs in at Facebook with the nonce that it gets, and sends the id token.
//
//	VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 go run login.go
//
// Sessions are those of github.com/gorilla/sessions: the cookie holds the session, signed and encrypted, and comes anew with
// each change. A client may send an old cookie again, so it is limited-login that takes each nonce once.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/sessions"
)

const (
	bodyLimitBytes = 40_960
	sessionSeconds = 3_600
)

// failure is the status and the code that a client gets.
type failure struct {
	status int
	code   string
}

func (f failure) Error() string { return f.code }

type answer struct {
	AuthenticationToken struct {
		Nonce string `json:"nonce"`
	} `json:"authentication_token"`
	Profile struct {
		UserID string `json:"user_id"`
		Name   string `json:"name"`
	} `json:"profile"`
	IssuedNonce string `json:"nonce"`
	Code        string `json:"code"`
}

var client = &http.Client{Timeout: 10 * time.Second}

// ask asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503.
func ask(path string, members map[string]any) (*answer, error) {
	said := &answer{}
	status, err := post(setting("VERIFY_URL", "http://127.0.0.1:8080")+path, members, said)
	switch {
	case err == nil && status == http.StatusOK:
		return said, nil
	// `unauthorized_client` is about this server's own key: no fault of the person's.
	case err == nil && (status == 400 || status == 401) && said.Code != "" && said.Code != "unauthorized_client":
		return nil, failure{status, said.Code}
	}
	log.Println("limited-login cannot tell:", status, said.Code, err)
	return nil, failure{http.StatusServiceUnavailable, "try_again"}
}

func post(url string, members map[string]any, said *answer) (int, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return 0, err
	}
	question, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	question.Header.Set("Content-Type", "application/json")
	question.Header.Set("X-Api-Key", os.Getenv("VERIFY_KEY"))
	response, err := client.Do(question)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, json.NewDecoder(response.Body).Decode(said)
}

// input is all that is read of a request.
type input struct {
	Login   string `json:"login"`
	IDToken string `json:"id_token"`
}

func begin(session *sessions.Session, _ input) (any, error) {
	said, err := ask("/nonces", map[string]any{})
	if err != nil {
		return nil, err
	}
	login := hex.EncodeToString(random(16))
	session.Values["login"], session.Values["nonce"] = login, said.IssuedNonce
	return map[string]string{"login": login, "nonce": said.IssuedNonce}, nil
}

func logIn(session *sessions.Session, sent input) (any, error) {
	if login, ok := session.Values["login"].(string); !ok || sent.Login != login {
		return nil, failure{http.StatusUnauthorized, "login_not_begun"}
	}
	said, err := ask("/verify", map[string]any{"id_token": sent.IDToken, "issued_nonce": true})
	if err != nil {
		return nil, err
	}
	// The nonce is this session's own. Another login's token has a good nonce too, but another one.
	if said.AuthenticationToken.Nonce != session.Values["nonce"] {
		return nil, failure{http.StatusUnauthorized, "another_login"}
	}
	// Nothing of the session before stays: this is a new one.
	session.Values = map[any]any{"user": said.Profile.UserID}
	return map[string]string{"user": said.Profile.UserID, "name": said.Profile.Name}, nil
}

func refresh(session *sessions.Session, sent input) (any, error) {
	user, ok := session.Values["user"].(string)
	if !ok {
		return nil, failure{http.StatusUnauthorized, "not_logged_in"}
	}
	// The person is the session's, whatever the client says.
	_, err := ask("/verify", map[string]any{"id_token": sent.IDToken, "subject": user})
	return map[string]string{"user": user}, err
}

func me(session *sessions.Session, _ input) (any, error) {
	user, ok := session.Values["user"].(string)
	if !ok {
		return nil, failure{http.StatusUnauthorized, "not_logged_in"}
	}
	return map[string]string{"user": user}, nil
}

// route gives a function the session and the input, and saves the session where it succeeds.
func route(store sessions.Store, method string, run func(*sessions.Session, input) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		var sent input
		var said any
		// A cookie that is not this server's, or too old, gives an empty session.
		session, _ := store.Get(r, "__Host-session")
		err := error(failure{http.StatusMethodNotAllowed, "method_not_allowed"})
		if r.Method == method {
			err = nil
		}
		if err == nil && method == http.MethodPost {
			if json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimitBytes)).Decode(&sent) != nil {
				err = failure{http.StatusBadRequest, "invalid_request"}
			}
		}
		if err == nil {
			said, err = run(session, sent)
		}
		if err == nil && method == http.MethodPost {
			err = session.Save(r, w)
		}
		if err != nil {
			refusal := failure{http.StatusInternalServerError, "internal"}
			errors.As(err, &refusal)
			w.WriteHeader(refusal.status)
			said = map[string]string{"error": refusal.code}
		}
		_ = json.NewEncoder(w).Encode(said)
	}
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func random(count int) []byte {
	bytes := make([]byte, count)
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
	return bytes
}

func main() {
	// Without a secret of your own every session ends with the process.
	keys := sha512.Sum512([]byte(setting("SESSION_SECRET", hex.EncodeToString(random(32)))))
	store := sessions.NewCookieStore(keys[:32], keys[32:])
	store.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	store.MaxAge(sessionSeconds)
	http.HandleFunc("/login/begin", route(store, http.MethodPost, begin))
	http.HandleFunc("/login", route(store, http.MethodPost, logIn))
	http.HandleFunc("/refresh", route(store, http.MethodPost, refresh))
	http.HandleFunc("/me", route(store, http.MethodGet, me))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+setting("PORT", "3000"), nil))
}
