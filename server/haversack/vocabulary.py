"""The words by which questions are sorted, as data. Words meet by their stems, never as parts of other words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from haversack.types import Intent
from haversack_index.lexical import stem


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# What a codebase question may be about. The order decides ties.
CATEGORIES: Mapping[str, frozenset[str]] = {
    "authentication": _stems(
        "auth authentication authenticate authorization authorize login logout signin signup password jwt oauth oauth2 "
        "passport session role permission credential sso saml csrf"
    ),
    "api": _stems(
        "api endpoint route router routing controller rest graphql swagger openapi webhook rpc grpc request response "
        "middleware handler http https url header cookie"
    ),
    "database": _stems(
        "database db schema entity migration orm sql sqlite postgres postgresql mysql mongodb mongoose prisma typeorm "
        "sequelize sqlalchemy query queries transaction table column repository redis"
    ),
    "architecture": _stems(
        "architecture architectural structure pattern monorepo microservice layer layering overview module dependency "
        "codebase framework stack scaffold diagram"
    ),
    "configuration": _stems(
        "config configuration configure setting settings environment env option flag yaml toml dotenv default variable"
    ),
    "implementation": _stems(
        "implement implementation build create add integrate feature refactor rename extend support function "
        "class method interface"
    ),
    "testing": _stems("test testing tests spec pytest jest mocha vitest unittest mock fixture coverage assertion stub"),
    "frontend": _stems(
        "frontend ui component css style react vue svelte angular button page form layout html dom render"
    ),
    "backend": _stems("backend server service worker queue job daemon socket stream"),
    "performance": _stems(
        "performance slow fast speed optimize optimise optimization latency memory leak cache caching profile "
        "throughput bottleneck benchmark"
    ),
    "errors": _stems(
        "error exception crash bug fail failure failing broken traceback stacktrace panic wrong issue debug "
        "fix warning invalid incorrect regression segfault overflow deadlock"
    ),
    "deployment": _stems(
        "deploy deployment docker dockerfile kubernetes k8s helm ci cd pipeline release publish workflow terraform "
        "container ansible"
    ),
    "documentation": _stems("doc docs document documentation readme changelog docstring tutorial guide comment typo"),
}

# Words that speak of software without naming a subject; together with any of the above they mark a code question.
CODE_WORDS = frozenset[str]().union(*CATEGORIES.values()) | _stems(
    "code repo project app application file folder directory import export variable parameter argument return type "
    "library package module line commit branch merge diff script command cli parser compiler loop array string object "
    "null undefined async thread process log logger logging parse serialize encode decode"
)

# Words by which a sentence asks for something to be done. Only in the place of an order do they count:
# "add a flag" does, "why does add fail" does not.
INTENT_WORDS: Mapping[Intent, frozenset[str]] = {
    Intent.REVIEW: _stems("review critique audit proofread"),
    Intent.SUMMARIZE: _stems("summarize summarise summary tldr recap digest"),
    Intent.PLAN: _stems("plan design roadmap architect propose brainstorm"),
    Intent.EDIT: _stems(
        "add fix implement rename refactor change update remove delete create write replace move convert "
        "migrate bump drop support allow make set disallow improve optimize optimise extract port upgrade "
        "downgrade revert handle clean rewrite insert correct adjust edit introduce simplify split merge "
        "inline enable disable use avoid stop prevent ensure deprecate expose reduce relax respect restore "
        "skip switch wrap format modify patch generate build integrate"
    ),
}
# Whole phrases come before words; the first that matches decides.
INTENT_PHRASES: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (Intent.REVIEW, re.compile(r"\bcode review\b|\b(?:look over|feedback on) (?:my|this|the|these)\b")),
    (Intent.SUMMARIZE, re.compile(r"\btl;?dr\b|\bgive (?:me )?an? (?:short |brief |quick )?summary\b|\bsum up\b")),
    (
        Intent.PLAN,
        re.compile(
            r"\bhow (?:should|would|could) (?:we|i|you) "
            r"(?:approach|go about|structure|design|implement|build|organi[sz]e)\b"
            r"|\b(?:make|write|draft|give me|create|outline|come up with) an? (?:\w+ )?"
            r"(?:plan|roadmap|design|proposal)\b"
            r"|\bstep[- ]by[- ]step plan\b"
        ),
    ),
    (
        Intent.PROMPT,
        re.compile(
            r"\b(?:write|improve|create|draft|generate|refine|rewrite|make) (?:me )?(?:an?|the|my|this) "
            r"(?:\w+ )?prompt\b"
        ),
    ),
    (
        Intent.SKILL,
        re.compile(r"\b(?:write|create|add|make|draft|generate|build) (?:me )?(?:an?|the|new) (?:\w+ )?skill\b"),
    ),
)

# A question on the project as a whole.
BROAD = re.compile(
    r"\b(?:overview|architecture|big picture|high[- ]level|tech(?:nology)? stack|code ?base|onboard(?:ing)?)\b"
    r"|\b(?:structure|layout|organi[sz]ation|purpose|goal|modules|components|layers|parts) of (?:the|this|our|my) "
    r"(?:project|repo(?:sitory)?|code|app(?:lication)?|system|package|library|program)\b"
    r"|\b(?:project|repo(?:sitory)?|folder|directory|code) (?:structure|layout|organi[sz]ation)\b"
    r"|\bwhat (?:does|is) (?:this|the|our) (?:project|repo(?:sitory)?|app(?:lication)?|library|package|program|tool)\b"
    r"|\b(?:explain|describe|summari[sz]e|understand|introduce|walk me through) (?:me )?(?:this|the|our) "
    r"(?:whole |entire )?(?:project|repo(?:sitory)?|app(?:lication)?|library|package|program|system|code)\b"
    r"|\bhow (?:is|does) (?:this|the|our) (?:whole )?(?:project|repo(?:sitory)?|app(?:lication)?|system|code) "
    r"(?:organi[sz]ed|structured|laid out|built|work|fit together)\b"
    r"|^(?:what(?:'s| is) (?:this|that|it)|what am i looking at|was ist das(?: hier)?|这是什么)[\s?!.？]*$"
    r"|\bwhere (?:do|should|can) i (?:start|begin)\b|\bentry ?points?\b|\bgetting started\b"
    r"|プロジェクト.{0,6}(?:概要|構成|構造)|アーキテクチャ|架构|项目.{0,4}(?:结构|概述|介绍)|프로젝트 ?구조|아키텍처",
    re.IGNORECASE,
)

# A message that is nothing but these words is talk. Asking how somebody is and saying goodbye included.
SMALL_TALK = _listed(
    "hi hello hey hiya yo howdy greetings good morning afternoon evening night day thanks thank thx ty cheers you u "
    "very much so a lot great nice cool awesome perfect ok okay k yes no yep nope yeah sure bye goodbye see later cya "
    "there everyone all team buddy friend mate how are is it going doing what's whats what up sup well done job work "
    "that's thats that it works welcome np please sorry lol haha hmm oh wow again for your the help appreciated "
    "amazing love helped helpful was have today back i'm im fine got understood right alright cool."
)
# At least one of these must be there, so that "how is it doing that" is not taken for talk.
SMALL_TALK_KEYS = _listed(
    "hi hello hey hiya yo howdy greetings morning afternoon evening night thanks thank thx ty cheers great nice cool "
    "awesome perfect ok okay k yes no yep nope yeah sure bye goodbye later cya sup welcome np sorry lol haha hmm oh "
    "wow appreciated amazing alright understood got helpful"
)
SMALL_TALK_PHRASES = re.compile(
    r"^(?:how are you(?: doing)?(?: today)?|how(?:'s| is) it going|what(?:'s| is) up|who are you|what can you do"
    r"|what(?:'s| is) your name|are you (?:there|human|a bot|an ai|real)|good (?:morning|afternoon|evening|night)"
    r"|(?:こんにちは|おはよう(?:ございます)?|こんばんは|ありがとう(?:ございます)?|你好|您好|谢谢|再见|안녕(?:하세요)?|감사합니다"
    r"|привет|спасибо|hola|gracias|bonjour|merci|hallo|danke|ciao|grazie|olá|obrigado)"
    r"(?:,? .{0,20})?)[\s!.?~。！？]*$",
    re.IGNORECASE,
)

# Things a model knows without the project. `subject` is what is asked about: when the index knows it, so does the
# project. A subject that begins with "the", "this" or "our" is something at hand, not general knowledge.
_NOT_AT_HAND = r"(?!(?:the|this|that|these|those|our|my|your|its|it)\b)"
_SUBJECT = r"(?P<subject>[^\W\d_][\w+#-]*(?: [\w+#-]+){0,3}?)"
GENERAL: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?:please |can you |could you )?(?:write|compose|give|tell|make up)(?: me| us)? (?:an?|another|some)"
        r"(?: \w+){0,2} (?:haiku|poem|joke|story|song|limerick|essay|riddle|rap|fun fact|quote|recipe|lyrics?)\b"
        r"(?P<subject>)",
        r"^(?:what|how)(?:'s| is) the (?:weather|time|date|capital|population|meaning of life|news|temperature)\b"
        r"(?P<subject>)",
        r"^(?:please )?translate\b.*\b(?:to|into) (?:english|german|french|spanish|japanese|chinese|italian|korean)\b"
        r"(?P<subject>)",
        r"^(?:recommend|suggest)(?: me)? (?:an?|some)(?: \w+)? (?:movies?|books?|restaurants?|films?|shows?|songs?)\b"
        r"(?P<subject>)",
        r"^(?:what(?:'s| is)|calculate|compute) [\d\s+*/().^%x-]+\??$(?P<subject>)",
        r"^convert [\d.,]+ ?\w+ (?:to|into) \w+\??$(?P<subject>)",
        r"^(?:what(?:'s| is| are)|define|explain|describe) (?:an? |the (?:concept|idea|notion) of |the term )?"
        rf"{_NOT_AT_HAND}"
        rf"(?!(?:wrong|happening|going|new|here|each|every|all)\b){_SUBJECT}"
        r"(?: in (?:simple|general|plain|layman'?s) (?:terms|english|words))?[?.!]*$",
        rf"^what does {_NOT_AT_HAND}(?P<subject>[\w+# -]{{2,30}}) (?:mean|stand for)\??$",
        rf"^(?:(?:what(?:'s| is)|explain|describe) )?(?:the )?differences? between {_NOT_AT_HAND}"
        rf"(?P<subject>[\w+# -]{{2,40}}? and {_NOT_AT_HAND}[\w+# -]{{2,40}})[?.!]*$",
    )
)
# Questions on people and dates of the world; of a person behind some code they are not (`CODE_WORDS` tell).
WORLD = re.compile(
    r"^(?:who|when) (?:is|was|were|won|invented|discovered|wrote|did|painted|composed) "
    r"(?!(?:responsible|in charge|call|us|work)\w*)(?P<subject>[\w ,.'-]+?)\?*$",
    re.IGNORECASE,
)

# The tests themselves are asked for, not a thing that has "test" in its name: `test ids` and `the test client` are
# features. "How are tests collected" asks about a feature as well, "how is this tested" about tests.
TESTS = re.compile(
    r"^(?!\W*how\b)(?:"
    r"(?:\W*[\w()*./-]{1,30}:)?\W*tests?\b"
    r"|.*\b(?:e2e|end-to-end|integration|regression|smoke|snapshot|fuzz|failing|failed|flaky|broken|missing|existing|"
    r"new|more|extra|additional|which|what|these|those|our|my|your|all|the|some) (?:\w+ )?tests?\b"
    r"(?! (?:ids?|names?|runners?|frameworks?|clients?|servers?|sessions?|nodes?|items?|functions?|class(?:es)?|runs?|"
    r"reports?|results?|outputs?|durations?|times?|order|paths?|dir\w*)\b)"
    r"|.*\b(?:add|write|create|fix|update|extend|improve|rename|remove|delete|refactor|move|run|rerun|skip|split|port|"
    r"clean(?: up)?|simplify|speed up|adjust|correct|generate)\b[^:\n]{0,40}"
    r"\btest(?:s\b|(?= *(?:$|[.,;])| (?:on|in|when|with|to|using|under)\b))"
    r"|.*\btests\W*$)"
    r"|\btests? (?:for|of|that|cases?|files?|suites?|coverage|covers?|covering|fails?|failing|failures?|modules?|"
    r"helpers?|utils?|fixtures?|data)\b"
    r"|\b(?:un)?tested\b|\bcoverage of\b|\bunit[- ]?tests?\b|\bspecs? (?:for|files?)\b",
    re.IGNORECASE,
)
# How to build, run, test or release the project: guides and build files answer, not the code.
_DO = r"(?:run|build|compile|install|set ?up|start|launch|test|lint|format|release|publish|deploy|contribute|develop)"
PRACTICAL = re.compile(
    rf"\bhow (?:do|can|should|would|to)\b(?: (?:i|we|you|one))?(?: \w+)? {_DO}(?:(?:,| and| or)+ \w+)*"
    r"(?: (?:it|this|(?:(?:to|the|this|all|our|its|your|just|only|a|one|single) )*(?:\w+[ -]){0,2}(?:tests?|suite|"
    r"project|repo|repository|code|app|application|package|library|program|binary|benchmarks?|docs|documentation|linters?|"
    r"checks|server|examples?|source)))?(?: (?:locally|from source|here|on my machine))?\W*$"
    r"|\bcommands? (?:to|for) (?:\w+ )?(?:run|build|test)"
    r"|\b(?:build|install(?:ation)?|setup|test|development) instructions\b"
    r"|^wie (?:\w+ )*(?:ich|wir|man) .*\b(?:tests?|projekt)\b.*\b(?:aus(?:führen)?|bauen|starten|laufen|installieren)\b"
    r"|(?:怎么|如何|怎样)(?:运行|执行|构建|编译|安装|启动)(?:测试|项目|单元测试|它|这个项目)?[？?。]?$",
    re.IGNORECASE,
)
# The changes that are not committed yet, as the thing that is spoken of.
CHANGES = re.compile(
    r"\b(?:uncommitted|unstaged|staged|commit message)\b|\b(?:my|these|the local|the current) (?:\w+ )?changes\b"
    r"|\b(?:the|this|my|current) (?:git )?diff"
    r"(?=\W*$|[,;] | (?:and|for|please|ok(?:ay)?|is|do|does|against|before|that|breaks?)\b)"
    r"|\bwhat (?:did i|have i|i) changed?\b|\bchanged files\b"
    r"|\bwork(?:ing)? (?:tree|copy)\b",
    re.IGNORECASE,
)
# Words that say what is to be done with changes, and nothing of what they are about.
CHANGE_WORDS = _stems(
    "review diff change changed uncommitted unstaged staged commit commits message write summarize summarise bug issue "
    "problem error mistake wrong look check code file recent latest last current local working tree copy git feedback "
    "critique audit proofread good ok fine improve better anything something pr pull request merge suggest describe"
)
DOCS = _stems("doc docs documentation readme changelog tutorial guide docstring documented documenting")
