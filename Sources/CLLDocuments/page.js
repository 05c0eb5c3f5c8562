// One page for two things: `demo` plays logins, `inspect` judges a token that is pasted. The server says which it is.
const $ = (id) => document.getElementById(id);
const forms = { login: $('login').elements, inspect: $('inspect').elements };
let state = { mode: '', checks: [], scenarios: [], faults: [], changing: [] };
const fields = ['app_id', 'nonce', 'permissions'];
const narrow = matchMedia('(max-width: 900px)');
let busy = false;

/** An element with text, which is never read as HTML. */
function element(tag, text = '', className = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: 'no-store', redirect: 'error' });
  } catch {
    throw new Error('The program behind this page does not answer. Start it again, then reload the page.');
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim() || `The program answered ${answer.status}.`);
  return JSON.parse(text);
}

// JSON is shown as it was sent, with its order, repetitions and long numbers, which a parsed value would lose.
// Nothing is indented deeper: 12,000 brackets within each other would be 144 MB of spaces.
const deepest = 20;
const jsonToken = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

const readable = (text) => { try { return JSON.stringify(JSON.parse(text)); } catch { return text; } };

function timeNote(name, value) {
  if (!/^(iat|exp|nbf|[a-z_]*_at)$/.test(name) || !/^\d{9,11}$/.test(value)) return '';
  const seconds = Math.round(Date.now() / 1000) - Number(value);
  const distance = Math.abs(seconds);
  const amount = distance < 120 ? `${distance} s` : distance < 7200 ? `${Math.round(distance / 60)} min`
    : distance < 172800 ? `${Math.round(distance / 3600)} h` : `${Math.round(distance / 86400)} days`;
  return seconds >= 0 ? `${amount} ago` : `in ${amount}`;
}

function showJSON(place, text) {
  const parts = [];
  let depth = 0, previous = '', name = '';
  const stack = [];
  const line = () => parts.push('\n' + '  '.repeat(Math.min(depth, deepest)));
  for (const token of text.match(jsonToken) ?? []) {
    if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1);
      stack.pop();
      if (previous !== '{' && previous !== '[') line();
      parts.push(token);
    } else if (token === ',') {
      parts.push(token);
      line();
    } else if (token === ':') {
      parts.push(': ');
    } else {
      if (previous === '{' || previous === '[') line();
      if (token === '{' || token === '[') {
        stack.push(token);
        depth += 1;
        parts.push(token);
      } else if (token[0] === '"') {
        const isName = stack.at(-1) === '{' && (previous === '{' || previous === ',');
        const shown = readable(token);
        if (isName) name = shown.slice(1, -1);
        parts.push(isName ? element('span', shown, 'name') : shown);
      } else {
        parts.push(token);
        const note = timeNote(name, token);
        if (note) parts.push(element('span', `  ${note}`, 'aside'));
      }
    }
    previous = token;
  }
  place.replaceChildren(...parts);
  place.scrollTop = 0;
}

/** The text of a part of the token, or a sentence about why there is none. */
function decoded(part) {
  try {
    const bytes = Uint8Array.from(atob(part.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function showPart(place, part) {
  const text = part === undefined ? null : decoded(part);
  if (text === null || !/^\s*[[{]/.test(text)) {
    place.replaceChildren(element('span', part === undefined ? 'The token has no such part.' : 'This part is no JSON.', 'aside'));
  } else {
    showJSON(place, text);
  }
}

function showToken(token) {
  const parts = token.split('.');
  $('apart').dataset.parts = parts.length;
  const pieces = parts.flatMap((part, index) =>
    [index ? '.' : '', element('span', part, parts.length === 3 ? `part${index}` : '')]);
  $('token').replaceChildren(...pieces);
  $('token').scrollTop = 0;
  showPart($('header'), parts.length > 1 ? parts[0] : undefined);
  if (parts.length === 1) {
    const sentence = 'The token has one part, as access tokens do. Only Facebook can read it.';
    $('header').replaceChildren(element('span', sentence, 'aside'));
  }
  showPart($('payload'), parts[1]);
  const signature = parts[2];
  $('signature').textContent = signature === undefined ? 'The token has no such part.'
    : signature === '' ? 'It is empty.'
    : `${Math.floor(signature.replace(/=+$/, '').length * 3 / 4)} bytes over the header and payload as they are sent.`;
}

// The codes of the last check. Only the service's answer has them: it knows the used nonces and the revoked logins.
const storeCodes = ['nonce_used', 'token_replayed', 'login_revoked'];

/** Shows every check, and returns one sentence about them. */
function showChecks(titles, report, answer) {
  const rows = titles.map(({ check, title }) => ({
    title, outcome: report?.checks.find((row) => row.check === check)?.outcome ?? 'unknown',
  }));
  if (state.mode === 'demo') {
    const outcome = !report ? 'unknown' : storeCodes.includes(answer?.code) ? 'failed'
      : report.accepted && !answer?.code ? 'passed' : 'skipped';
    rows.push({ outcome, title: 'Used for the first time, not revoked' });
  }
  const words = { passed: 'passed', failed: 'refused', skipped: 'not reached', not_asked: 'not asked', unknown: 'not judged' };
  $('checks').replaceChildren(...rows.map((row) => {
    const item = element('li', '', row.outcome);
    const title = element('span', row.title);
    if (row.outcome === 'not_asked') title.append(element('small', ' · not asked'));
    item.append(title);
    item.title = words[row.outcome];
    item.setAttribute('aria-label', `${row.title}: ${words[row.outcome]}`);
    return item;
  }));
  // A check that was not asked for is neither made nor counted.
  const asked = rows.filter((row) => row.outcome !== 'not_asked');
  const failed = asked.findIndex((row) => row.outcome === 'failed');
  const passed = asked.filter((row) => row.outcome === 'passed').length;
  return failed >= 0 ? `Refused by check ${failed + 1} of ${asked.length}, “${asked[failed].title}”.`
    : answer?.code || !passed ? '' : `All ${passed} checks passed.`;
}

function showSteps(steps) {
  $('steps').replaceChildren(...steps.map((step) => {
    const item = document.createElement('li');
    item.append(element('b', step.what));
    item.append(element('b', step.result, /^[23]/.test(step.result) ? 'is-good' : /^[45]/.test(step.result) ? 'is-bad' : ''));
    item.append(element('small', step.note));
    return item;
  }));
}

function showProfile(profile) {
  const rows = Object.entries(profile ?? {}).flatMap(([name, value]) => [
    element('dt', name), element('dd', Array.isArray(value) ? value.join(', ')
      : typeof value === 'object' ? Object.entries(value).map((pair) => pair.join(' ')).join(', ') : String(value)),
  ]);
  $('profile').replaceChildren(...(rows.length ? rows : [element('dt', 'none'), element('dd', 'A refused token tells nothing about a person.')]));
  $('profile').scrollTop = 0;
}

/** A warning about a nonce that can be guessed: the compared one, or else the token's. */
function nonceWarning({ request, token }) {
  const { binding, value } = forms.inspect;
  const pasted = state.mode === 'inspect' && ['nonce', 'raw_nonce'].includes(binding.value) ? value.value : undefined;
  const nonce = request?.nonce ?? request?.raw_nonce ?? pasted ?? parsed(decoded(token.split('.')[1]))?.nonce;
  const count = typeof nonce === 'string' ? [...nonce].length : 0;
  return count === 0 || count >= 16 ? ''
    : `The nonce has fewer than 16 characters (${count}), so it can be guessed. Make one of POST /nonces or of a random generator.`;
}

function showVerdict(kind, status, code, which, detail, cure, warning = '') {
  $('verdict').className = kind;
  $('status').textContent = status;
  $('code').textContent = code;
  $('which').textContent = which;
  $('detail').textContent = detail;
  $('cure').textContent = cure ? `What to do: ${cure}` : '';
  $('warning').textContent = warning;
  // On a narrow screen the verdict may stand below the clicked button, and a form takes the place of the checks.
  $('verdict').scrollIntoView({ block: state.mode === 'inspect' && narrow.matches ? 'start' : 'nearest' });
}

/** The request as it was sent, with the middle of a token left out. */
function showRequest(asked, request) {
  const short = Object.entries(request ?? {}).map(([name, value]) =>
    [name, typeof value === 'string' && value.length > 90 ? `${value.slice(0, 24)}…${value.slice(-12)}` : value]);
  showJSON($('request'), JSON.stringify(Object.fromEntries(short)));
  $('request').prepend(element('span', `${asked}\n`, 'aside'));
}

const parsed = (text) => { try { return JSON.parse(text); } catch { return null; } };

function showOutcome(outcome) {
  // The report is null if the service did not read the request, for example because it is too long.
  const { report, token } = outcome;
  const answer = parsed(outcome.answer);
  const refused = answer?.code ? answer : report?.accepted === false ? report : null;
  const accepted = !refused && report?.accepted === true;
  const person = accepted ? answer?.profile ?? report.profile : null;
  delete document.querySelector('main').dataset.empty;
  if (outcome.steps) showSteps(outcome.steps);
  const which = showChecks(outcome.checks, report, answer);
  showToken(token);
  showProfile(person);
  if (outcome.request) showRequest(outcome.asked, outcome.request);
  showJSON($('answer'), outcome.answer ?? JSON.stringify(report));
  $('command').textContent = outcome.command;
  showVerdict(
    accepted ? 'good' : 'bad', outcome.status || (accepted ? 'accepted' : 'refused'), refused?.code ?? (accepted && outcome.status ? 'accepted' : ''),
    which,
    accepted ? outcome.note || `The token is good, and belongs to this login. Log ${person?.user_id ?? 'the person'} in.`
      : refused?.detail ?? 'The service answered something else; its answer stands below.',
    // The report's cure belongs to the report's code. The service may give another code, or 503.
    refused?.hint ?? (report && refused?.code === report.code ? report.cure : ''),
    nonceWarning(outcome),
  );
}

function showFailure(error) {
  showVerdict('bad', 'That did not work', '', '', error.message, '');
}

function showState(next) {
  state = { ...state, ...next };
  document.documentElement.dataset.mode = state.mode;
  $('place').textContent = state.place;
  $('keys').textContent = state.keys;
  if (state.mode !== 'demo') return;
  showOutage(next.away_seconds ?? 0);
  const current = document.activeElement?.dataset?.place;
  const pushed = $('scenarios').scrollLeft;
  $('scenarios').replaceChildren(...state.scenarios.map((scenario, place) => {
    const button = element('button', scenario.title);
    button.type = 'button';
    button.dataset.scenario = scenario.name;
    button.dataset.place = place;
    button.title = scenario.hint;
    button.append(element('small', scenario.expects.replace('401 ', '')), element('span', scenario.hint, 'hint'));
    if (scenario.name === state.current) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => play(scenario.name));
    const item = document.createElement('li');
    item.append(button);
    return item;
  }));
  $('scenarios').scrollLeft = pushed;
  $('scenarios').querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (current !== undefined) $('scenarios').querySelector(`[data-place="${current}"]`)?.focus();
}

// The outage of Facebook's key address: the time until it ends, and whether this page began it.
let ticking = 0, tookAway = false;

function showOutage(seconds) {
  const end = performance.now() + seconds * 1000;
  clearInterval(ticking);
  const show = () => {
    const rest = Math.ceil((end - performance.now()) / 1000);
    $('outage').hidden = rest <= 0;
    $('rest').textContent = `${rest} s`;
    if (rest > 0) return;
    clearInterval(ticking);
    if (seconds) ask('state').then(showState, showFailure);
  };
  ticking = setInterval(show, 500);
  show();
}

addEventListener('pagehide', () => {
  if (tookAway) navigator.sendBeacon('run', new Blob(['{"scenario":"back"}'], { type: 'application/json' }));
});
$('end').addEventListener('click', () => play('back'));

/** Does one thing at a time; what is shown stays until the next outcome is there, so that nothing jumps. */
async function perform(work) {
  if (busy) return;
  busy = true;
  document.querySelector('main').setAttribute('aria-busy', 'true');
  try { await work(); } catch (error) { showFailure(error); }
  busy = false;
  document.querySelector('main').removeAttribute('aria-busy');
}

function play(scenario) {
  return perform(async () => {
    remember(scenario);
    tookAway = scenario === 'away' || tookAway && scenario !== 'back';
    const outcome = await ask('run', {
      scenario, app_id: forms.login.app_id.value.trim(), nonce: forms.login.nonce.value,
      permissions: forms.login.permissions.value.split(/[\s,]+/).filter(Boolean),
    });
    showState({ ...outcome.state, current: scenario });
    showOutcome(outcome);
    $('verdict').dataset.scenario = scenario;
  });
}

// The chosen login stands in the address, so that a reload keeps it.
function remember(scenario) {
  const changed = fields.filter((name) => forms.login[name].value !== forms.login[name].defaultValue);
  const parts = changed.map((name) => `${name}=${encodeURIComponent(forms.login[name].value)}`);
  history.replaceState(null, '', `#${[encodeURIComponent(scenario), ...parts].join('&')}`);
}

/** The scenario that the address names, with its fields in the form; a good login where it names none. */
function remembered() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of fields) {
    if (given.has(name)) forms.login[name].value = given.get(name);
  }
  const name = given.keys().next().value ?? '';
  if (name.startsWith('fault:') && state.faults.some((one) => `fault:${one.name}` === name)) {
    forms.login.scenario.value = name.slice(6);
    $('own').open = true;
    return name;
  }
  // Neither a link of another page nor a reload changes the keys or begins an outage.
  return state.scenarios.some((one) => one.name === name) && !state.changing.includes(name) ? name : 'good';
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('verdict').focus();
});

$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  play(`fault:${forms.login.scenario.value}`);
});

$('inspect').addEventListener('submit', (event) => {
  event.preventDefault();
  perform(async () => {
    const outcome = await ask('run', {
      id_token: forms.inspect.id_token.value, binding: forms.inspect.binding.value, value: forms.inspect.value.value,
      at: forms.inspect.at.value.trim(),
    });
    showState(outcome.state);
    showOutcome(outcome);
  });
});

forms.inspect.binding.addEventListener('change', () => {
  forms.inspect.value.disabled = ['unbound', 'issued_nonce'].includes(forms.inspect.binding.value);
});

// Up and down go through the scenarios, as in any list.
$('scenarios').addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const buttons = [...$('scenarios').querySelectorAll('button')];
  const place = buttons.indexOf(document.activeElement);
  if (!step || place < 0) return;
  event.preventDefault();
  buttons[(place + step + buttons.length) % buttons.length].focus();
});

$('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText($('command').textContent);
    $('copy').textContent = 'Copied';
  } catch {
    $('copy').textContent = 'Select it';
    getSelection().selectAllChildren($('command'));
  }
  setTimeout(() => { $('copy').textContent = 'Copy'; }, 1500);
});

$('own').open = !narrow.matches;

await perform(async () => {
  showState(await ask('state'));
  showChecks(state.checks, null, null);
  if (state.mode !== 'demo') {
    forms.inspect.at.value = state.at ?? '';
    return;
  }
  for (const name of ['app_id', 'permissions']) forms.login[name].defaultValue = state[name];
  forms.login.scenario.replaceChildren(...state.faults.map(({ name, fault }) => {
    const option = element('option', fault);
    option.value = name;
    return option;
  }));
});
if (state.mode === 'demo') play(remembered());
