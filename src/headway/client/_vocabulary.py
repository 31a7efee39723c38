"""The words by which services say what kind of refusal it is.

One table serves codes (split into words first: `rateLimitExceeded` → "rate Limit Exceeded") and sentences. The order
is the rule: what names money or an allowance beats what names a rate, which beats what names a permission, because
refusals for a rate often mention keys, plans and permission in passing, and the reverse is rare.
"""

import re
from enum import Enum
from functools import lru_cache

from headway.client._alternatives import Alternatives
from headway.client._prose import LONGEST, period_of_name, words


class Meaning(Enum):
    """What a code or a sentence says about a refusal."""

    MONEY = "money or an allowance that is bought"
    LOCKED = "another request holds the same object"
    OVERLOAD = "the server's capacity"
    LIMIT = "too many requests"
    QUOTA = "a quota whose period isn't said"
    SETUP = "the caller's set-up"
    FORBIDDEN = "not permitted"
    TRANSIENT = "temporary"


_ABROAD = (
    r"频繁|頻繁|限流|限频|流控|(?:请求|访问|調用|调用|次数|频率).{0,8}(?:过多|过快|上限|超过|超出|超限)|请求过多|回数制限|制限を超え"
    r"|リクエスト.{0,4}多すぎ|アクセス.{0,4}集中|요청.{0,8}(?:많|초과)|zu viele (?:anfragen|versuche|zugriffe)|trop de (?:requêtes|tentatives|demandes)"
    r"|demasiad[ao]s (?:solicitudes|peticiones|intentos)|muitas (?:solicitações|requisições|tentativas)|troppe richieste"
    r"|troppi tentativi|te veel (?:verzoeken|pogingen)|слишком много (?:запросов|попыток)"
)
"""Too many requests, in the languages whose waits are read."""
_GAP = r"(?:\s+[\w'’*\"-]+){0,4}\s+"
_TABLE = (
    (
        Meaning.MONEY,
        r"insufficient\s?(?:quota|funds|balance|credits?)|payment required|spend(?:ing)?\s?(?:limit|cap)|usage\s?cap"
        r"|(?:out of|not enough|no(?: more| remaining)?|run out of|used up|used all|exhausted|exceeded|insufficient)"
        rf"(?:\s+[\w'’]+){{0,3}}\s+(?:credits?|balance)\b|\bcredits?{_GAP}?\s*(?:exceeded|exhausted|deplet|used up"
        r"|reached|expired|run out|too low|insufficient|(?:are |is )?(?:required|needed) for)|\bbalance\b(?:\s+\w+){0,3}\s+(?:low|insufficient|empty|exhausted)"
        r"|\bbilling (?:details|hard limit|limit|account)|\bpayment\b|prepa(?:id|y)|top up|trial (?:has )?(?:ended|expired)"
        r"|\bran? out of\b|run out of|overdue|unpaid|arrears|free tier (?:has been )?exhausted|storage\s?(?:quota|limit)|disk quota|insufficient storage",
    ),
    (
        Meaning.LOCKED,
        r"lock timeout|lock_timeout|cannot be accessed right now|another (?:\w+ ){0,3}(?:request|operation|process) (?:is|was)"
        r"|concurrent (?:modification|update|write)|optimistic lock|prior request|still processing",
    ),
    (
        Meaning.OVERLOAD,
        r"\bover\s?load|over capacity|at capacity|exceed\w{0,8} capacity|capacity (?:constraints?|exceeded|exhausted)|reduced[\s-]capacity"
        r"|insufficient capacity|(?:server|service|system|cluster|backend)s?(?:\s+\w+){0,3}\s+busy|server\s?busy|too busy"
        r"|(?:high|heavy|increased) (?:server )?(?:load|demand|traffic|volume)|rejected execution|queue (?:is )?full"
        r"|circuit.?break|\bmaxlag\b|\blagged\b|back\s?pressure|out of (?:memory|capacity)|load shed"
        r"|server is (?:under|experiencing)",
    ),
    (
        Meaning.LIMIT,
        r"rate\s?-?limit|rate exceeded|request rate|requests? limit|too (?:many|fast|quick|frequent)|too much (?:request|weight|usage)|throttl"
        r"|slow\s?down|flood|over rate\b|over (?:the )?(?:rate|query|request|daily|request) ?limit|\bcalls? (?:rate|limit)"
        rf"|exceed\w{{0,8}}{_GAP}?\s*(?:rate|requests?|calls?|queries|hits|limits?|allow\w+|throughput)\b|max(?:imum)?{_GAP}?\s*"
        r"(?:calls|requests|rate|queries)|\blimits?(?:\s+\w+){0,3}\s+(?:exceed|reached|hit|violat)|reached"
        rf"{_GAP}?\s*limits?\b|throughput exceeded|(?:reduce|lower|limit) (?:your|the)?\s*(?:request|rate|frequency|requests)"
        r"|requests? (?:are |is )?(?:too frequent|limited)|frequency|concurren\w{1,8} (?:requests?|limit|connections?)"
        r"|\bqps\b|\b[rt]pm\b|requests? per (?:second|minute|hour|day)|activity limit|retry later|unusual traffic"
        r"|abus(?:e|ive)|bandwidth limit|limit\w{0,8} (?:of )?\d+|more requests available|automated (?:requests|queries)"
        r"|limit (?:exceed|reach|control)|(?:one|1|single) (?:\w+ )?(?:request|call|connection|query|session)\b[\w ]{0,60}at a time"
        r"|calls per|budget (?:is |has been )?exhausted|(?:try|wait)\w{0,8} (?:again )?(?:tomorrow)|being limited|blocked temporarily|temporar\w{1,8} (?:block|bann)"
        rf"|{_ABROAD}",
    ),
    (
        Meaning.QUOTA,
        r"\bquota\b|usage limits?|\bused up\b|resource\s?(?:has been )?\s?exhausted|allowance|allotment|entitlement|plan limit|limit exceeded"
        r"|over (?:your )?limit|allocation",
    ),
    (
        Meaning.SETUP,
        r"not (?:been )?(?:configured|enabled|used in project|activated|registered|subscribed)|service disabled"
        r"|(?:api|app|access|subscription|secret)[\s-]?(?:key|token|id)|(?:invalid|missing|expired|unknown|bad|no)"
        r"(?:\s+\w+){0,2}\s+(?:key|token|credentials?|signature|user.agent|client|header|certificate)|user.?agent|refer+er"
        r"|(?:ssl|https) (?:is )?required|unregistered|unreg\b|requires? sign.?up|unauthenticated|authenticat\w"
        r"|\bdisabled\b|\bnot enabled\b|clock skew|signature|request time too skewed|billing (?:has )?not",
    ),
    (
        Meaning.FORBIDDEN,
        r"permission|not accessible|forbidden|\bdenied\b|access\s?(?:is |was |has been )?(?:denied|restricted|blocked)|not authori[sz]ed"
        r"|unauthori[sz]ed|not allowed|\bbanned\b|suspended|black\s?list|deny.?list|you have been blocked|\bblocked\b"
        r"|scopes?\b|not permitted|prohibited|insufficient (?:permission|privilege|scope|auth|rights)|(?:country|region|location)"
        r"|terms of (?:service|use)|policy violation|do not have access|not have (?:access|permission)|entitle|privilege",
    ),
    (
        Meaning.TRANSIENT,
        r"maintenance|temporar|unavailable|back\s?end error|internal (?:server )?error|restart|starting|warming|loading"
        r"|try again|retry|timed? ?out|read.only|deploy|upgrad(?:e|ing) in progress|be back|undergoing",
    ),
)
_PATTERNS = tuple((kind, Alternatives(pattern)) for kind, pattern in _TABLE)


@lru_cache(maxsize=512)
def meaning(text: str) -> Meaning | None:
    """Return what a code in words, or a sentence, says; None when it says nothing known."""
    text = text[:LONGEST].lower().replace("_", " ")
    return next((kind for kind, phrases in _PATTERNS if phrases.search(text)), None)


_GENERIC_TEXT = """
    ratelimit ratelimited ratelimitexceeded ratelimiterror ratelimitexceedederror ratelimitederror toomanyrequests
    toomanyrequest toomanyrequestserror throttled throttling requestthrottled insufficientquota quotaexceeded quotaexceedederror
    quotaexhausted overloaded overloadederror error errors failed failure fail forbidden unauthorized
    permissiondenied accessdenied resourceexhausted unavailable serviceunavailable aborted invalidrequesterror
    invalidrequest badrequest notok requesterror apierror clienterror servererror internalerror about:blank
    oauthexception true false none null httperror httpexception exception object status exceeded
    limitexceeded usagelimits global denied blocked unknown warning message notification
    """
_GENERIC = frozenset(_GENERIC_TEXT.split())
_SHAPE = re.compile(r"[A-Za-z][\w.:/-]{2,95}", re.A)


_REQUESTS = Alternatives(
    r"rate.?limit|rate exceeded|over.{0,12}limit|requests?|calls?\b|throttl|too (?:many|fast|quick|frequent)|slow down|flood"
    r"|quer(?:y|ies)|\bper\b|quota|credit|balance|billing|usage|overload|capacity|busy|retry|again|wait|attempts|daily|month|hits"
    rf"|frequen|lag|budget|limit reached|\bapi limit|{_ABROAD}"
)
_SIZES = re.compile(
    r"\b(?:size|length|characters?|bytes|payload|page|parameter|argument|depth|rows|columns|context|file|complexity of|too large|too long)\b"
)
_CERTAIN = Alternatives(
    r"rate.?limit|too many (?:requests|calls|attempts)|throttl|quota|per (?:second|minute|hour|day)"
)


def speaks_of_requests(text: str) -> bool:
    """Whether a sentence about a limit is about requests in time, and not about the size of one of them."""
    text = text[:LONGEST].lower()
    return _CERTAIN.search(text) or (_REQUESTS.search(text) and not _SIZES.search(text))


@lru_cache(maxsize=512)
def names_a_limit(code: str) -> bool:
    """Whether a code says more than that there were too many requests: `activityLimitReached` does.

    It must speak of a limit, a period or a counted unit; a URN and other words for "rate limited" name none.
    """
    if not _SHAPE.fullmatch(code) or code.lower().startswith(("urn:", "http:", "https:", "about:")):
        return False
    if _is_generic(code) or not _WORD.search(code):
        return False
    if code.lower() in _COUNTED:
        return True
    return speaks_of_a_limit(code) or period_of_name(code) is not None


def speaks_of_a_limit(code: str) -> bool:
    """Whether the words of a code are about a limit of any kind."""
    in_words = words(code).lower()
    return meaning(in_words) in _OF_LIMITS or in_words.endswith(" limit")


def _is_generic(code: str) -> bool:
    """Whether a code only says "rate limited" or "error" in other words."""
    return re.sub(r"[^a-z:]", "", code.lower()) in _GENERIC


_COUNTED = frozenset(["requests", "tokens", "input_tokens", "output_tokens", "concurrency", "qps", "bandwidth"])
_OF_LIMITS = (Meaning.MONEY, Meaning.OVERLOAD, Meaning.LIMIT, Meaning.QUOTA)


_WORD = re.compile(r"[A-Za-z]{3}")
_CAMEL = re.compile(r"\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b(\s+(?:[Ll]imit|[Qq]uota)\b)?")
_PER = re.compile(r"\b[a-z]\w*(?:-\w+){0,6}-per-(?:second|minute|min|hour|day|week|month)\b", re.I)
_ORDINAL = re.compile(r"\b(primary|secondary) rate limit", re.I)


@lru_cache(maxsize=512)
def limit_named_in(text: str) -> str | None:
    """Return the name of a limit that a sentence uses, or None.

    It is a CamelCase word that says what is limited, states a period, or stands before "limit" (`TotalRequests Limit exceeded`); a
    hyphenated word that says per what (`free-models-per-day`); or the word that tells one rate limit from another (`a secondary rate limit`).
    """
    text = text[:LONGEST]
    for found in _CAMEL.finditer(text):
        word = found.group(1)
        if not _is_generic(word) and (found.group(2) or period_of_name(word) or meaning(words(word)) is Meaning.LIMIT):
            return word
    per = _PER.search(text) if "-per-" in text else None
    if per is not None:
        return per.group()
    ordinal = _ORDINAL.search(text)
    return ordinal.group(1).lower() if ordinal else None
