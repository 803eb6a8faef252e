"""Sets whose members everybody knows, for the tasks that ask for many different ones."""


def members(text: str) -> list[str]:
    """Return the members of a block, which stand between commas and line ends."""
    return [name.strip() for line in text.strip().splitlines() for name in line.split(",") if name.strip()]


COUNTRIES = members("""
Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahamas, Bahrain
Bangladesh, Barbados, Belarus, Belgium, Belize, Benin, Bhutan, Bolivia, Bosnia, Botswana, Brazil, Brunei, Bulgaria
Burkina Faso, Burundi, Cambodia, Cameroon, Canada, Cape Verde, Chad, Chile, China, Colombia, Comoros, Congo, Costa Rica
Croatia, Cuba, Cyprus, Czech Republic, Denmark, Djibouti, Dominica, Ecuador, Egypt, El Salvador, Eritrea, Estonia
Eswatini, Ethiopia, Fiji, Finland, France, Gabon, Gambia, Georgia, Germany, Ghana, Greece, Grenada, Guatemala, Guyana
Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Ivory Coast, Jamaica, Japan
Jordan, Kazakhstan, Kenya, Kiribati, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, Liberia, Libya
Liechtenstein, Lithuania, Luxembourg, Madagascar, Malawi, Malaysia, Maldives, Mali, Malta, Mauritania, Mauritius, Mexico
Moldova, Monaco, Mongolia, Montenegro, Morocco, Mozambique, Myanmar, Namibia, Nauru, Nepal, Netherlands, New Zealand
Nicaragua, Nigeria, North Korea, North Macedonia, Norway, Pakistan, Palau, Panama, Papua New Guinea, Paraguay, Peru
Philippines, Poland, Portugal, Qatar, Romania, Russia, Rwanda, Samoa, San Marino, Saudi Arabia, Senegal, Serbia
Seychelles, Sierra Leone, Singapore, Slovakia, Slovenia, Somalia, South Africa, South Korea, South Sudan, Spain
Sri Lanka, Suriname, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, Thailand, Togo, Tonga, Trinidad, Tunisia
Turkey, Turkmenistan, Tuvalu, Uganda, Ukraine, United Arab Emirates, United Kingdom, United States, Uruguay, Uzbekistan
Vanuatu, Vatican, Venezuela, Vietnam, Yemen, Zambia, Zimbabwe
""")
STATES = members("""
Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Georgia, Hawaii, Idaho
Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota, Mississippi
Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York, North Carolina, North Dakota, Ohio
Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont, Virginia
Washington, West Virginia, Wisconsin, Wyoming
""")
ELEMENTS = members("""
hydrogen, helium, lithium, beryllium, boron, carbon, nitrogen, oxygen, fluorine, neon, sodium, magnesium, aluminum
silicon, phosphorus, sulfur, chlorine, argon, potassium, calcium, scandium, titanium, vanadium, chromium, manganese
iron, cobalt, nickel, copper, zinc, gallium, germanium, arsenic, selenium, bromine, krypton, rubidium, strontium
yttrium, zirconium, niobium, molybdenum, technetium, ruthenium, rhodium, palladium, silver, cadmium, indium, tin
antimony, tellurium, iodine, xenon, cesium, barium, lanthanum, cerium, neodymium, samarium, europium, gadolinium
terbium, erbium, ytterbium, hafnium, tantalum, tungsten, rhenium, osmium, iridium, platinum, gold, mercury, thallium
lead, bismuth, polonium, astatine, radon, francium, radium, actinium, thorium, uranium, neptunium, plutonium
""")
ANIMALS = members("""
alligator, ant, antelope, ape, baboon, badger, bat, bear, beaver, bee, beetle, bison, boar, buffalo, butterfly, camel
cat, caterpillar, cheetah, chicken, chimpanzee, cow, coyote, crab, crane, crocodile, crow, deer, dog, dolphin, donkey
dove, dragonfly, duck, eagle, eel, elephant, elk, falcon, ferret, fish, flamingo, fly, fox, frog, gazelle, gecko
giraffe, goat, goose, gorilla, grasshopper, hamster, hare, hawk, hedgehog, heron, hippo, horse, hyena, iguana, jackal
jaguar, jellyfish, kangaroo, koala, ladybug, leopard, lion, lizard, llama, lobster, lynx, meerkat, mole, mongoose
monkey, moose, mosquito, moth, mouse, mule, newt, octopus, orangutan, ostrich, otter, owl, ox, oyster, panda, panther
parrot, peacock, pelican, penguin, pig, pigeon, porcupine, possum, puma, python, rabbit, raccoon, rat, raven, reindeer
rhino, salamander, salmon, scorpion, seal, shark, sheep, shrimp, skunk, sloth, snail, snake, sparrow, spider, squid
squirrel, starfish, swan, tiger, toad, tortoise, turkey, turtle, walrus, wasp, weasel, whale, wolf, wombat, worm, yak
zebra
""")
FRUITS = members("""
apple, apricot, avocado, banana, blackberry, blueberry, cantaloupe, cherry, clementine, coconut, cranberry, currant
date, dragonfruit, durian, elderberry, fig, gooseberry, grape, grapefruit, guava, honeydew, jackfruit, kiwi, kumquat
lemon, lime, lychee, mandarin, mango, melon, mulberry, nectarine, olive, orange, papaya, passion fruit, peach, pear
persimmon, pineapple, plum, pomegranate, pomelo, quince, raisin, raspberry, rhubarb, starfruit, strawberry, tangerine
tomato, watermelon, beet, broccoli, cabbage, carrot, cauliflower, celery, corn, cucumber, eggplant, garlic, kale
leek, lettuce, mushroom, onion, parsnip, pea, pepper, potato, pumpkin, radish, spinach, squash, turnip, zucchini
artichoke, asparagus, bean, ginger, okra
""")
CITIES = members("""
Paris, London, Berlin, Madrid, Rome, Oslo, Vienna, Dublin, Lisbon, Athens, Warsaw, Prague, Budapest, Stockholm, Helsinki
Copenhagen, Brussels, Amsterdam, Bern, Belgrade, Sofia, Bucharest, Kiev, Kyiv, Moscow, Istanbul, Cairo, Lagos, Nairobi
Johannesburg, Cape Town, Casablanca, Tunis, Algiers, Addis Ababa, Tokyo, Osaka, Kyoto, Beijing, Shanghai, Hong Kong
Seoul, Bangkok, Singapore, Jakarta, Manila, Hanoi, Delhi, Mumbai, Bangalore, Kolkata, Chennai, Karachi, Lahore, Dhaka
Tehran, Baghdad, Riyadh, Dubai, Abu Dhabi, Doha, Jerusalem, Tel Aviv, Beirut, Damascus, Amman, Sydney, Melbourne
Brisbane, Perth, Auckland, Wellington, New York, Los Angeles, Chicago, Houston, Phoenix, Philadelphia, San Francisco
San Diego, Seattle, Boston, Miami, Dallas, Denver, Atlanta, Las Vegas, Washington, Toronto, Montreal, Vancouver
Mexico City, Havana, Bogota, Lima, Quito, Caracas, Santiago, Buenos Aires, Montevideo, Rio de Janeiro, Sao Paulo
Barcelona, Munich, Hamburg, Frankfurt, Cologne, Milan, Naples, Venice, Florence, Turin, Lyon, Marseille, Nice
Manchester, Liverpool, Birmingham, Edinburgh, Glasgow, Geneva, Zurich, Krakow, Porto, Seville, Valencia
""")
JOBS = members("""
accountant, actor, architect, artist, astronaut, athlete, author, baker, banker, barber, biologist, butcher, carpenter
cashier, chef, chemist, cleaner, clerk, coach, cook, dancer, dentist, designer, detective, doctor, driver, economist
editor, electrician, engineer, farmer, firefighter, fisherman, florist, gardener, geologist, hairdresser, historian
janitor, journalist, judge, lawyer, librarian, manager, mechanic, miner, model, musician, nurse, painter, pharmacist
photographer, physicist, pilot, plumber, poet, police officer, politician, producer, professor, programmer
psychologist, receptionist, reporter, sailor, salesperson, scientist, secretary, singer, soldier, surgeon, tailor
teacher, technician, therapist, translator, veterinarian, waiter, writer, analyst, developer, consultant, counselor
""")
SETS = {
    "countries": COUNTRIES,
    "states of the United States": STATES,
    "chemical elements": ELEMENTS,
    "animals": ANIMALS,
    "fruits and vegetables": FRUITS,
    "large cities of the world": CITIES,
    "professions": JOBS,
}
