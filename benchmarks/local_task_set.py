"""Small tasks for local models, in five kinds, with checks that run what was made."""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("write", "change", "fix", "answer", "two")


@dataclass(frozen=True)
class Task:
    kind: str
    name: str
    prompt: str
    check: str
    """Python that raises if the work is wrong. `load(path)`, `run(path, *arguments)` and `answer` are defined."""
    files: dict[str, str] = field(default_factory=dict)


def _writes(name: str, prompt: str, check: str) -> Task:
    return Task("write", name, prompt, check)


WRITE = (
    _writes(
        "area",
        "Write area.py with a function circle_area(radius) that returns the area of a circle.",
        "import math\nassert abs(load('area.py').circle_area(2) - 4 * math.pi) < 0.01",
    ),
    _writes(
        "vowels",
        "Write vowels.py with a function count_vowels(text) that returns how many vowels a text has.",
        "f = load('vowels.py').count_vowels\nassert f('education') == 5 and f('rhythm') == 0",
    ),
    _writes(
        "palindrome",
        "Write palindrome.py with a function is_palindrome(word) that returns True or False.",
        "f = load('palindrome.py').is_palindrome\nassert f('level') is True and f('lever') is False",
    ),
    _writes(
        "factorial",
        "Make factorial.py. It needs a function factorial(n).",
        "f = load('factorial.py').factorial\nassert f(0) == 1 and f(6) == 720",
    ),
    _writes(
        "fibonacci",
        "Write fib.py with fibonacci(n), which returns a list of the first n Fibonacci numbers, starting with 0.",
        "f = load('fib.py').fibonacci\nassert list(f(7)) == [0, 1, 1, 2, 3, 5, 8]",
    ),
    _writes(
        "stack",
        "Write stack.py with a class Stack that has push(item), pop() and is_empty().",
        "s = load('stack.py').Stack()\nassert s.is_empty()\ns.push(1); s.push(2)\nassert s.pop() == 2 and not s.is_empty()",
    ),
    _writes(
        "leap",
        "Create leap.py with is_leap(year) for the Gregorian calendar.",
        "f = load('leap.py').is_leap\nassert f(2024) and f(2000) and not f(1900) and not f(2023)",
    ),
    _writes(
        "reverse",
        "Write reverse_words.py with reverse_words(sentence): the same words in the opposite order.",
        "assert load('reverse_words.py').reverse_words('one two three') == 'three two one'",
    ),
    _writes(
        "largest",
        "Write largest.py with largest(numbers), which returns the biggest number of a list without using max().",
        "f = load('largest.py').largest\nassert f([3, 9, 2]) == 9 and f([-5, -2]) == -2",
    ),
    _writes(
        "squares",
        "Write squares.py. When it is run it prints the squares of the numbers from 1 to 5, one per line.",
        "assert run('squares.py').split() == ['1', '4', '9', '16', '25']",
    ),
    _writes(
        "multiplication",
        "Write table.py that prints the multiplication table of 7, from 7 x 1 = 7 to 7 x 10 = 70.",
        "out = run('table.py')\nassert '7 x 1 = 7' in out and '7 x 10 = 70' in out",
    ),
    _writes(
        "fizzbuzz",
        "Write fizzbuzz.py that prints FizzBuzz for the numbers 1 to 15.",
        "assert run('fizzbuzz.py').split() == '1 2 Fizz 4 Buzz Fizz 7 8 Fizz Buzz 11 Fizz 13 14 FizzBuzz'.split()",
    ),
    _writes(
        "even",
        "I need evens.py with evens(numbers) that gives back only the even numbers of a list.",
        "assert list(load('evens.py').evens([1, 2, 3, 4, 7, 8])) == [2, 4, 8]",
    ),
    _writes(
        "average",
        "Write stats.py with mean(values) and median(values).",
        "m = load('stats.py')\nassert m.mean([1, 2, 6]) == 3 and m.median([5, 1, 3]) == 3 and m.median([4, 1, 2, 3]) == 2.5",
    ),
    _writes(
        "gcd",
        "Write gcd.py with gcd(a, b), the greatest common divisor.",
        "f = load('gcd.py').gcd\nassert f(12, 18) == 6 and f(7, 5) == 1",
    ),
    _writes(
        "caesar",
        "Write caesar.py with encrypt(text, shift), which shifts lowercase letters and keeps everything else.",
        "f = load('caesar.py').encrypt\nassert f('abc xyz', 3) == 'def abc'",
    ),
    _writes(
        "frequency",
        "Write letters.py with letter_count(text): a dictionary with how often each character occurs.",
        "assert dict(load('letters.py').letter_count('banana')) == {'b': 1, 'a': 3, 'n': 2}",
    ),
    _writes(
        "rectangle",
        "Write rectangle.py with a class Rectangle(width, height) and the methods area() and perimeter().",
        "r = load('rectangle.py').Rectangle(3, 4)\nassert r.area() == 12 and r.perimeter() == 14",
    ),
    _writes(
        "sorting",
        "Write bubble.py with bubble_sort(items), which returns the sorted list.",
        "assert load('bubble.py').bubble_sort([4, 1, 3, 2]) == [1, 2, 3, 4]",
    ),
    _writes(
        "bash",
        "Write a bash script count.sh that prints the numbers from 1 to 4, one per line.",
        "assert run('count.sh').split() == ['1', '2', '3', '4']",
    ),
)

_SHOP = '''PRICES = {"tea": 3, "cake": 5}


def total(items):
    """Sum of the prices."""
    return sum(PRICES[item] for item in items)


def names():
    return sorted(PRICES)
'''
_TEXTS = """def shout(text):
    return text.upper()


def whisper(text):
    return text.lower()


if __name__ == "__main__":
    print(shout("ready"))
"""
_QUEUE = """class Queue:
    def __init__(self):
        self.items = []

    def put(self, item):
        self.items.append(item)

    def take(self):
        return self.items.pop(0)
"""

CHANGE = (
    Task(
        "change",
        "method",
        "Add a method size() to the class in queue_of_items.py. It returns how many items are waiting.",
        "q = load('queue_of_items.py').Queue()\nq.put(1); q.put(2)\nassert q.size() == 2 and q.take() == 1",
        {"queue_of_items.py": _QUEUE},
    ),
    Task(
        "change",
        "title",
        "In texts.py, add a function title_case(text) which makes each word start with a capital letter.",
        "m = load('texts.py')\nassert m.title_case('red fox') == 'Red Fox' and m.shout('a') == 'A' and m.whisper('B') == 'b'",
        {"texts.py": _TEXTS},
    ),
    Task(
        "change",
        "price",
        "In shop.py the price of tea should be 4.",
        "m = load('shop.py')\nassert m.total(['tea', 'cake']) == 9 and m.names() == ['cake', 'tea']",
        {"shop.py": _SHOP},
    ),
    Task(
        "change",
        "rename",
        "Rename the function shout in texts.py to loud, also where it is called.",
        "m = load('texts.py')\nassert m.loud('a') == 'A' and not hasattr(m, 'shout')\nassert run('texts.py').strip() == 'READY'",
        {"texts.py": _TEXTS},
    ),
    Task(
        "change",
        "discount",
        "Give total in shop.py a second argument, discount=0, that is subtracted from the sum.",
        "m = load('shop.py')\nassert m.total(['cake']) == 5 and m.total(['cake', 'tea'], 2) == 6 and m.names()",
        {"shop.py": _SHOP},
    ),
)

FIX = (
    Task(
        "fix",
        "division",
        "average([]) in scores.py crashes. It should return 0.",
        "f = load('scores.py').average\nassert f([]) == 0 and f([2, 4]) == 3",
        {"scores.py": "def average(scores):\n    return sum(scores) / len(scores)\n"},
    ),
    Task(
        "fix",
        "syntax",
        "python3 hours.py fails. Fix it.",
        "assert run('hours.py').strip() == '120'\nassert load('hours.py').minutes(3) == 180",
        {"hours.py": "def minutes(hours)\n    return hours * 60\n\n\nprint(minutes(2))\n"},
    ),
    Task(
        "fix",
        "missing import",
        "Running roots.py ends with a NameError. Repair the program.",
        "assert run('roots.py').strip() == '5.0'",
        {"roots.py": "def root(number):\n    return math.sqrt(number)\n\n\nprint(root(25))\n"},
    ),
    Task(
        "fix",
        "off by one",
        "last_items in tail.py should return the last count items of a list, but it returns one too few. Fix the bug.",
        "f = load('tail.py').last_items\nassert f([1, 2, 3, 4], 2) == [3, 4] and f([1, 2, 3], 1) == [3]",
        {"tail.py": "def last_items(items, count):\n    return items[-count + 1:]\n"},
    ),
    Task(
        "fix",
        "condition",
        "can_vote in age.py is wrong for people who are exactly 18: they may vote. Fix that.",
        "f = load('age.py').can_vote\nassert f(18) and f(30) and not f(17)",
        {"age.py": "def can_vote(age):\n    if age > 18:\n        return True\n    return False\n"},
    ),
)

_SETTINGS = 'HOST = "depot.example"\nPORT = 8472\nRETRIES = 6\n'
ANSWER = (
    Task("answer", "constant", "Which port is used in settings.py?", "assert '8472' in answer", {"settings.py": _SETTINGS}),
    Task(
        "answer",
        "names",
        "What functions are defined in texts.py?",
        "assert 'shout' in answer and 'whisper' in answer",
        {"texts.py": _TEXTS},
    ),
    Task(
        "answer",
        "returns",
        "What does total in shop.py return for one tea and one cake?",
        "assert str(load('shop.py').total(['tea', 'cake'])) in answer",
        {"shop.py": _SHOP},
    ),
    Task(
        "answer",
        "class",
        "What is the name of the class in queue_of_items.py?",
        "assert 'Queue' in answer",
        {"queue_of_items.py": _QUEUE},
    ),
    Task(
        "answer",
        "notes",
        "Read journal.md: in which city was the meeting?",
        "assert 'Lisbon' in answer",
        {"journal.md": "# Journal\n\nMonday: packed.\nTuesday: the meeting was in Lisbon.\nFriday: home.\n"},
    ),
)

TWO = (
    Task(
        "two",
        "module and user",
        "Write convert.py with km_to_miles(km), 1 km being 0.621 miles, and then main.py, "
        "which imports it and prints km_to_miles(10).",
        "assert abs(load('convert.py').km_to_miles(100) - 62.1) < 0.1\n"
        "assert abs(float(run('main.py').split()[-1]) - 6.21) < 0.01",
    ),
    Task(
        "two",
        "code and test",
        "Write double.py with double(x), which returns x times two, and test_double.py that checks it with assert.",
        "assert load('double.py').double(4) == 8\nrun('test_double.py')\nassert 'assert' in open('test_double.py').read()",
    ),
    Task(
        "two",
        "change and use",
        "Add triple(x) to maths.py, and make app.py print triple(5).",
        "m = load('maths.py')\nassert m.triple(2) == 6 and m.twice(2) == 4\nassert '15' in run('app.py')",
        {"maths.py": "def twice(x):\n    return x * 2\n", "app.py": "from maths import twice\n\nprint(twice(5))\n"},
    ),
    Task(
        "two",
        "write and run",
        "Write primes.py that prints the primes below 20, one per line, and save its output in primes.txt.",
        "want = '2 3 5 7 11 13 17 19'.split()\n"
        "assert run('primes.py').split() == want\nassert open('primes.txt').read().split() == want",
    ),
    Task(
        "two",
        "data and reader",
        "Create colors.txt with the lines red, green and blue, and read_colors.py, which prints how many lines colors.txt has.",
        "assert open('colors.txt').read().split() == ['red', 'green', 'blue']\nassert '3' in run('read_colors.py')",
    ),
)

TASKS: tuple[Task, ...] = (*WRITE, *CHANGE, *FIX, *ANSWER, *TWO)
