// Templates of Jinja: what they say, as Jinja 3.1.6 has it with the settings of transformers.
#include "runtime/text/Jinja.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

using namespace hydra::text;
using hydra::support::Error;

namespace {

std::string render(const std::string &source) {
  const jinja::Surroundings around{
      .messages = {{"system", " s\303\251 "},
                   {"user", " Hi "},
                   {"assistant", " b <think>x</think> "},
                   {"user", "c\n"}},
      .values = {{"bos_token", std::string("<s>")}, {"tools", jinja::None()}},
      .date = [](std::string_view) -> std::string { return "01 Jan 2025"; }};
  try {
    const jinja::Syntax syntax = jinja::parse(source);
    return rendered(syntax, around).value_or("raises");
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return std::string("error: ") + error.what();
  }
}

std::string repeated(const std::string &text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i)
    all += text;
  return all;
}

struct Case {
  const char *source, *said;
};
const Case kCases[] = {
    {"a\n  {% if true %}\n b\n  {% endif %}\nc\n", "a\n b\nc"},
    {"a \n {{- ' b ' -}} \n c", "a b c"},
    {"x {%- if true -%} y {%- endif -%} z", "xyz"},
    {"  {%+ if true %}q{% endif %}\n", "  q"},
    {"{% if true +%}\na{% endif %}", "\na"},
    {"a\r\n{# c #}\r\nb\n\n", "a\nb\n"},
    {"{{ 'x' }}\ny", "x\ny"},
    {"{{ 'a'+'b' ~ 1 }}|{{ 1 + 2*3 - 4 // 3 }}|{{ -7 // 2 }},{{ -7 % 3 }},{{ 7 % -3 }}",
     "ab1|6|-4,2,-2"},
    {"{{ 7 // -1 }} {{ 7 % -1 }}", "-7 0"},
    {"{{ 'abc'[1:] }}{{ 'abc'[::-1] }}{{ 'abcdef'[1:5:2] }}{{ 'abcdef'[-2:] }}{{ 'abcdef'[:-2] "
     "}}{{ 'abcdef'[10:] }}{{ 'abcdef'[4:1:-1] }}{{ 'abcdef'[-100:2] }}{{ 'abcdef'[:-100:-1] }}",
     "bccbabdefabcdedcabfedcba"},
    {"{{ messages[0].content[1:2] }}", "s"},
    {"{{ messages[-1]['role'] }}{{ messages[1:]|length }}{{ messages[::-1][0].role }}",
     "user3user"},
    {"{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ loop.revindex0 }}{{ 'x' if "
     "loop.last }}{% endfor %}",
     "122130x"},
    {"{% for m in messages if m.role == 'nobody' %}a{% else %}none{% endfor %}", "none"},
    {"{% set x = 1 %}{% for m in messages %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
     "22221"},
    {"{% set ns = namespace(x=1) %}{% for m in messages %}{% set ns.x = ns.x + 1 %}{% endfor %}{{ "
     "ns.x }}",
     "5"},
    {"{% if x is defined %}a{% elif y is not defined %}b{% else %}c{% endif %}", "b"},
    {"{{ 'a' if false }}|{{ 'a' if true else 'b' }}|{{ 'a' if 0 else 'b' if 1 else 'c' }}", "|a|b"},
    {"{% macro f(a, b='q') %}[{{ a }}{{ b }}]{% endmacro %}{{ f('x') }}{{ f('x','y') }}{{ f(b='1', "
     "a='2') }}",
     "[xq][xy][21]"},
    {"{% set t %}  a {{ 1 }} {% endset %}{{ t | trim }}|{{ t|length }}", "a 1|6"},
    {"{{ 'y' if not 1 == 2 }}{{ 'y' if 1 < 2 < 3 }}{{ 'y' if 3 > 2 >= 2 }}{{ 'n' if 1 < 2 > 3 }}",
     "yyy"},
    {"{{ 'y' if 'a' in 'abc' and 'z' not in 'abc' }}{{ 'y' if 'role' in messages[0] }}{{ 'y' if "
     "'x' not in messages[0] }}{{ 'y' if 1 in [1,2] }}",
     "yyyy"},
    {"{{ messages | selectattr('role','equalto','user') | list | length }}{{ (messages | "
     "rejectattr('role','==','user') | list)[0].role }}",
     "2system"},
    {"{{ messages | map(attribute='role') | join(',') }}", "system,user,assistant,user"},
    {"{{ messages[2].content.split('</think>')[-1].lstrip() }}|{{ "
     "messages[2].content.split('<think>', 1)[0] }}",
     "| b "},
    {"{{ 'a,b,c'.split(',')[1] }}{{ ' x '.strip() }}{{ 'xxax'.strip('x') }}{{ 'xxax'.rstrip('x') "
     "}}{{ 'xx'.strip('x') }}|",
     "bxaxxa|"},
    {"{{ 'aXb'.upper() }}{{ 'aXb'|lower }}{{ 'hello wORLD'|capitalize }}", "AXBaxbHello world"},
    {"{{ 'aXb'.replace('X','--') }}{{ 'aXb'|replace('a','') }}", "a--bXb"},
    {"  {% if true %}  a  {% endif %}  ", "  a    "},
    {"b", "b"},
    {"  {%- if true -%}  a  {%- endif -%}  ", "a"},
    {" b {{- ' c ' -}}  ", " b c "},
    {" d", " d"},
    {"{# comment #}", ""},
    {"x {#- c -#} y {# d #}", "xy "},
    {"z", "z"},
    {"a", "a"},
    {"  {%+ if true %} q {% endif %}", "   q "},
    {"{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}{% for k in messages[0] "
     "%}{{ k }}{% endfor %}",
     "role=system;content= s\303\251 ;rolecontent"},
    {"{% for k, v in messages[0]|items %}{{ k }}={{ v }};{% endfor %}",
     "role=system;content= s\303\251 ;"},
    {"{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(2, 5) %}{{ i }}{% if i == 3 %}{% "
     "break %}{% endif %}{% endfor %}",
     "01223"},
    {"{% for i in range(5) %}{% if i % 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "024"},
    {"{{ 'y' if messages[0].content is string and messages is iterable and messages[0] is mapping "
     "}}",
     "y"},
    {"{{ messages[0].get('x', 'def') }}{{ messages[0].get('role') }}", "defsystem"},
    {"{% set a, b = 'x', 'y' %}{{ a }}{{ b }}", "xy"},
    {"{{ ('a', 'b')[1] }}{{ ['a','b'][0] }}{{ {'k': 'v'}['k'] }}{{ {'k': 'v'}.k }}", "bavv"},
    {"{{ 'tab\\tq\\'s \\\"d\\\" \\\\ \\z' }}{{ \"it's\" }}", "tab\tq's \"d\" \\ \\zit's"},
    {"{{ 'a' 'b' }}", "ab"},
    {"{{ messages[0] == messages[0] and 'same' }}{{ 'diff' if messages[0] != messages[1] }}",
     "samediff"},
    {"{{ 'y' or 'n' }}{{ '' or 'n' }}{{ '' and 'n' }}|{{ 1 and 2 }}", "yn|2"},
    {"{{ messages[10] is defined and 'x' or 'y' }}", "y"},
    {"{{ strftime_now('%d') }}{{ strftime_now is defined and 'y' }}", "01 Jan 2025y"},
    {"{% generation %}g{% endgeneration %}", "g"},
    {"{{ '}}' }}{{ '{%' }}", "}}{%"},
    {"{{ {'a': {'b': 'c'}}.a.b }}{{ {'a': {'b': 'c'}}['a']['b'] }}", "cc"},
    {"{% if messages[0].x %}a{% endif %}{{ messages[0].x is not defined and 'u' }}", "u"},
    {"{% if messages[0].x == 'a' %}a{% else %}b{% endif %}{% if messages[0].x is none %}n{% else "
     "%}m{% endif %}",
     "bm"},
    {"{% for t in messages[0].tool_calls %}x{% endfor %}e", "e"},
    {"{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else 'none' }}{{ "
     "loop.nextitem is defined and loop.nextitem.role or '-' }}{% endfor %}",
     "noneusersystemassistantuseruserassistant-"},
    {"{% for m in messages %}{% for n in messages %}{{ loop.index }}{% endfor %}{{ loop.index }}{% "
     "endfor %}",
     "12341123421234312344"},
    {"{% for m in messages[1:] if loop is defined %}a{% endfor %}", ""},
    {"{{ messages|first is mapping and 'y' }}{{ (messages|last).role }}", "yuser"},
    {"{{ 'abc'|first }}{{ 'abc'|last }}{{ 'abc'|list|length }}{{ 'abc'|length }}", "ac33"},
    {"{{ true and 1 }}{{ 2 if true is true }}", "12"},
    {"{{ 'a' if 'x' is in ['x'] }}{{ 'a' if 'x' is eq 'x' }}{{ 'a' if 3 is number }}", "aaa"},
    {"{{- 'x' }}", "x"},
    {"{{ 'y' -}}", "y"},
    {"{%- set q = [1,2]+[3] -%}{{ q|length }}{{ q[-1] }}{{ q|join('-') }}", "331-2-3"},
    {"{{ ['a','','b']|join('-') }}{{ ['','b']|join('-') }}{{ '-'.join(['','x']) }}", "a--b-b-x"},
    {"{{ messages[0]['role'].startswith('sys') and 's' }}{{ 'abc'.endswith('c') and 'e' }}", "se"},
    {"{% set content = 'o' %}{% if true %}{% set content = 'i' %}{% endif %}{{ content }}", "i"},
    {"{% for m in [1] %}{% if true %}{% set z = 'i' %}{% endif %}{{ z }}{% endfor %}{{ 'out' if z "
     "is defined else 'in' }}",
     "iin"},
    {"{% set messages = messages[1:] %}{{ messages[0].role }}{% for m in messages %}{{ m.role }}{% "
     "endfor %}",
     "useruserassistantuser"},
    {"{% macro g() %}{{ messages|length }}{{ w is defined and w or 'no' }}{% endmacro %}{% set w = "
     "'W' %}{{ g() }}{% for m in [1] %}{% set w = 'V' %}{{ g() }}{% endfor %}",
     "4W4W"},
    {"{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n-1) }}{% endif %}{% endmacro %}{{ r(5) }}",
     "543210"},
    {"{{ 1 if messages|length > 3 else 2 }}{{ messages|length - 1 }}{{ (messages|length - 1) - 0 "
     "}}",
     "133"},
    {"{{ ' a '|trim ~ ' b '|trim }}{{ 'x' + ' a ' | trim + 'y' }}", "abxay"},
    {"{{ -1|string }}{{ - 1 + 2 }}", "-11"},
    {"{{ [1,2,3][::-1]|join }}{{ [1,2,3]|reverse|list|join(',') }}", "3213,2,1"},
    {"{{ 'a' if messages[0].role != 'user' and messages[0].role not in ['assistant','tool'] else "
     "'b' }}",
     "a"},
    {"{{ not messages[0].x and 'q' }}", "q"},
    {"{{ messages[0]['content'] is not string and 'x' or 'y' }}", "y"}

};

} // namespace

TEST(Jinja, SaysWhatJinjaSays) {
  for (const Case &one : kCases)
    EXPECT_EQ(render(one.source), one.said) << one.source;
}

TEST(Jinja, Raises) {
  EXPECT_EQ(render("a{{ raise_exception('no') }}"), "raises");
  EXPECT_EQ(render("{% if tools %}{{ raise_exception('no') }}{% endif %}b"), "b");
}

TEST(Jinja, WhatIsNotKnownIsRefused) {
  for (const char *source : {"{{",
                             "{{ a",
                             "{% if true %}",
                             "{% if true %}{% endfor %}",
                             "{% endif %}",
                             "{{ 'a }}",
                             "{# a",
                             "{% include 'a' %}",
                             "{% break %}",
                             "{{ 1.5 }}",
                             "{{ 'a' | unheard }}",
                             "{{ 'a' is unheard }}",
                             "{{ 'a'.unheard() }}",
                             "{{ unheard('a') }}",
                             "{{ (1 }}",
                             "{{ 1) }}",
                             "{{ [1:2:3:4] }}",
                             "{{ 'a'[] }}",
                             "{{ '\\x41' }}",
                             "{{ 1 2 }}",
                             "{% set = 1 %}",
                             "{% set a.b = 1 %}",
                             "{% for in a %}{% endfor %}",
                             "{{ 99999999999999999999 }}",
                             "{{ 9223372036854775807 + 1 }}",
                             "{{ 1 // 0 }}",
                             "{{ 'a'[::0] }}",
                             "{{ 'a' + 1 }}",
                             "{{ messages }}",
                             "{% for a in 1 %}{% endfor %}",
                             "{{ a = 1 }}",
                             "{{ \x01 }}"})
    EXPECT_TRUE(render(source).starts_with("error: ")) << source << ": " << render(source);
}

TEST(Jinja, WhatIsUndefinedIsNotPrinted) {
  for (const char *source : {"{{ x }}", "{{ x.y }}", "{{ x | trim }}", "{{ x + 'a' }}",
                             "{{ messages[0].unheard }}", "{{ messages[9] }}"})
    EXPECT_TRUE(render(source).starts_with("error: ")) << source << ": " << render(source);
}

TEST(Jinja, TemplatesOfOthersEnd) {
  const std::string open = repeated("(", 100'000), deep = repeated("{% if true %}", 100'000);
  for (const std::string &source :
       {"{{ " + open, "{{ " + repeated("not ", 100'000) + "1 }}",
        "{{ " + repeated("-", 100'000) + "1 }}", "{{ a" + repeated("[0]", 100'000) + " }}",
        "{{ 1" + repeated("+1", 100'000) + " }}", deep,
        std::string("{% for a in range(9223372036854775807) %}{% endfor %}"),
        std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
        "{% set x = 'ab' %}" + repeated("{% set x = x + x %}", 60),
        "{% set x = [1] %}" + repeated("{% set x = x + x %}", 60),
        "{% set x = [1] %}" + repeated("{% set x = [x] %}", 1000),
        "{% set x = [1] %}{% set y = [1] %}" +
            repeated("{% set x = [x, x] %}{% set y = [y, y] %}", 30) + "{% if x == y %}{% endif %}",
        "{% set x = 'a' %}" + repeated("{% set x = x | replace('a', x + x) %}", 60),
        std::string(
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}")})
    EXPECT_TRUE(render(source).starts_with("error: ")) << source.substr(0, 80);
  // A namespace that is a part of itself.
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{% set m = [n] %}"
                   "{{ 'same' if m == [n.n] and n.n == n }}"),
            "same");
}
