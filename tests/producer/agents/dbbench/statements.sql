SELECT * FROM people
SELECT * FROM people WHERE name = "ann"
SELECT * FROM people WHERE name = 'ANN'
SELECT * FROM people WHERE name = "name"
SELECT * FROM people WHERE city = 'paris'
SELECT city, COUNT(*) FROM people GROUP BY city
SELECT UPPER(city), COUNT(*) FROM people GROUP BY UPPER(city)
SELECT DISTINCT UPPER(city) FROM people
SELECT name FROM people WHERE UPPER(name) = 'ann'
SELECT name FROM people WHERE name = 'ce'
SELECT name FROM people WHERE name = 'Dan'
SELECT name FROM people WHERE name LIKE 'dan'
SELECT name FROM people WHERE name LIKE '%N%'
SELECT name FROM people WHERE name LIKE 'A__'
SELECT name FROM people WHERE name LIKE '%\'%'
SELECT name FROM people WHERE name = 'O''Neil, Jr'
SELECT AVG(age) FROM people
SELECT city, AVG(age) FROM people GROUP BY city
SELECT AVG(age) AS a FROM people HAVING a > 20
SELECT SUM(age)/COUNT(*) FROM people
SELECT 10/3
SELECT 1/3*3
SELECT 7 DIV 2, 7 % 3, -7 % 3, MOD(7, 3), 7.5 % 2
SELECT 5/0
SELECT ROUND(AVG(age), 2), ROUND(2.5), ROUND(-2.5), ROUND(2.345, 2), ROUND(10/3, 1)
SELECT age / 2 FROM people ORDER BY id
SELECT pay * 1.5 FROM people ORDER BY id
SELECT pay / age AS r FROM people ORDER BY id
SELECT AVG(age) * 2, AVG(pay) / AVG(age) FROM people
SELECT MAX(age) - MIN(age), SUM(pay) FROM people
SELECT id FROM people WHERE age > (SELECT AVG(age) FROM people)
SELECT id FROM people WHERE age / 2 > 15
SELECT name, COUNT(*) FROM people
SELECT name, COUNT(*) FROM people GROUP BY city
SELECT city, name FROM people GROUP BY city
SELECT city FROM people GROUP BY city HAVING COUNT(*) > 1
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city
SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 1
SELECT city, COUNT(*) FROM people GROUP BY 1
SELECT name FROM people ORDER BY name
SELECT name FROM people ORDER BY city, name DESC
SELECT age FROM people ORDER BY age
SELECT id FROM people ORDER BY age DESC, id LIMIT 2, 3
SELECT id FROM people ORDER BY id LIMIT 3 OFFSET 2
SELECT id FROM people WHERE age IN (SELECT age FROM people LIMIT 1)
SELECT id FROM people WHERE age = (SELECT age FROM people ORDER BY id LIMIT 1)
SELECT id FROM people WHERE city IN ('OSLO', 'rome')
SELECT id FROM people WHERE city NOT IN ('OSLO', 'rome')
SELECT id FROM people WHERE name IS NULL
SELECT id FROM people WHERE name <=> NULL
SELECT id FROM people WHERE name != 'ann'
SELECT id FROM people WHERE name <> 'ANN' AND NOT city = 'x'
SELECT id FROM people WHERE name = 0
SELECT id FROM people WHERE name = 5
SELECT id FROM people WHERE age = '31'
SELECT id FROM people WHERE age > '9'
SELECT id FROM people WHERE age = 'abc'
SELECT name || city FROM people
SELECT id FROM people WHERE age > 30 || pay > 200
SELECT id FROM people WHERE age > 30 && pay > 50
SELECT CONCAT(name, '-', id) FROM people
SELECT CONCAT_WS(',', name, city) FROM people
SELECT LENGTH(name), CHAR_LENGTH(name) FROM people
SELECT IF(age > 30, 'old', 'young') FROM people
SELECT CASE WHEN age > 30 THEN 1 ELSE 0 END FROM people
SELECT CASE city WHEN 'OSLO' THEN 1 ELSE 2 END FROM people
SELECT IFNULL(age, 0), COALESCE(pay, age) FROM people
SELECT SUBSTRING(city, 1, 2), LEFT(city, 2), RIGHT(city, 2) FROM people
SELECT LOWER(name), TRIM(name), REPLACE(city, 'o', '0') FROM people
SELECT GREATEST(1, 2), LEAST(1, 2), ABS(-3), FLOOR(2.7), CEIL(2.1), POWER(2, 3), SQRT(16)
SELECT COUNT(DISTINCT city), COUNT(age), COUNT(*) FROM people
SELECT MIN(name), MAX(city) FROM people
SELECT id FROM people WHERE name BETWEEN 'a' AND 'c'
SELECT id FROM people WHERE age BETWEEN 22 AND 31
SELECT id FROM people WHERE name REGEXP '^[ab]'
SELECT p.name FROM people AS p WHERE p.id = 1
SELECT p.name, q.name FROM people p JOIN people q ON p.city = q.city AND p.id < q.id
SELECT a.city FROM people a LEFT JOIN people b ON a.id = b.age
SELECT name FROM People
SELECT NAME FROM people
SELECT nothing FROM people
SELECT `nothing` FROM people
SELECT "nothing" FROM people
SELECT name FROM nobody
SELECT name FROM (SELECT name, age FROM people WHERE age > 24) AS d WHERE age < 32
SELECT m FROM (SELECT AVG(age) AS m FROM people) AS d
SELECT name FROM (SELECT name FROM people)
SELECT city FROM people UNION ALL SELECT 'OSLO'
WITH c AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT * FROM c WHERE n > 1
WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c
SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) FROM people
SELECT id, RANK() OVER (ORDER BY age) FROM people WHERE age IS NOT NULL
SELECT SUM(age) OVER (PARTITION BY city) FROM people
SELECT TRUE, FALSE, NULL, 1 = 1
SELECT 'a' = 'A', 'a' = 'a ', 'a' < 'B'
SELECT 1 + '2', '3' * 2
SELECT 0.1 + 0.2
SELECT -age FROM people
SELECT age + 0.5 FROM people
SELECT VERSION
SELECT
SELEC * FROM people
SELECT * FROM people WHERE
SELECT * FROM people;
SELECT * FROM people; DELETE FROM people
SELECT 1; SELECT 2
SELECT * FROM people WHERE name = 'it''s'
SELECT 'it\'s'
SELECT "double ""quoted"""
SELECT 'a\nb'
SELECT # comment
SELECT 1 # comment
SELECT 1 -- comment
SELECT /* c */ 1
INSERT INTO people VALUES (8, 'Eve', 'Bonn', 50, 9)
INSERT INTO people (id, name) VALUES (8, 'Eve'), (9, "Fred")
INSERT INTO people (id, age) VALUES (8, '44')
INSERT INTO people (id, age) VALUES (8, 'abc')
INSERT INTO people (id, age) VALUES (8, '')
INSERT INTO people (id, age) VALUES (8, 3.5)
INSERT INTO people (id, age) VALUES (8, 2.5), (9, -2.5), (10, 2.4999)
INSERT INTO people (id, age) VALUES (8, 3000000000)
INSERT INTO people (id, name) VALUES (8, 123)
INSERT INTO people (id, nothing) VALUES (8, 1)
INSERT INTO people VALUES (8, 'x')
INSERT INTO people SELECT id + 10, name, city, age, pay FROM people
INSERT INTO people (id, name) SELECT COUNT(*), MAX(name) FROM people
INSERT INTO people (id, age) SELECT 9, AVG(age) FROM people
INSERT INTO people (id) VALUES (NULL)
INSERT INTO people (id) VALUES (TRUE)
INSERT INTO people SET id = 8, name = 'x'
REPLACE INTO people (id, name) VALUES (1, 'new')
UPDATE people SET age = age + 1
UPDATE people SET age = age + 1, pay = age
UPDATE people SET age = 1, pay = age * 2
UPDATE people SET age = pay, pay = age
UPDATE people SET age = age / 2
UPDATE people SET age = age * 1.5
UPDATE people SET name = 'X' WHERE city = 'PARIS'
UPDATE people SET name = UPPER(name), city = CONCAT(city, '!')
UPDATE people SET age = NULL WHERE id = 1
UPDATE people SET age = 'x' WHERE id = 1
UPDATE people SET age = 5 ORDER BY id DESC LIMIT 2
UPDATE people SET age = 5 LIMIT 2
UPDATE people AS p SET p.age = 5 WHERE p.id = 1
UPDATE people p SET age = 5 WHERE p.id = 1
UPDATE people SET nothing = 1
UPDATE people SET age = (SELECT m FROM (SELECT MAX(age) AS m FROM people) AS d)
UPDATE people SET pay = CASE WHEN age > 30 THEN pay * 2 ELSE pay END
UPDATE people SET pay = IF(age > 30, 1, 0)
UPDATE people SET pay = ROUND(pay * 1.1)
UPDATE people SET pay = pay * 1.1
UPDATE people SET name = 5 WHERE id = 1
UPDATE people SET age = 10 / 4 WHERE id = 1
DELETE FROM people
DELETE FROM people WHERE city = 'rome'
DELETE FROM people WHERE age IS NULL OR pay < 50
DELETE FROM people WHERE name LIKE 'o%'
DELETE FROM people ORDER BY id LIMIT 3
DELETE FROM people LIMIT 1
DELETE FROM people WHERE id = (SELECT m FROM (SELECT MAX(id) AS m FROM people) AS d)
DELETE FROM people WHERE id IN (SELECT id FROM (SELECT id FROM people WHERE age > 30) AS d)
DELETE FROM people WHERE id = (SELECT MAX(id) FROM people)
DELETE FROM people WHERE nothing = 1
DELETE people WHERE id = 1
TRUNCATE TABLE people
DROP TABLE people
CREATE TABLE x (a INT)
ALTER TABLE people ADD x INT
SHOW TABLES
DESCRIBE people
SET @x = 1
USE mysql
BEGIN
EXPLAIN SELECT 1
CALL x()

SELECT name FROM people WHERE name LIKE 'ce'
SELECT name FROM people WHERE name LIKE 'C%'
SELECT name FROM people WHERE city LIKE 'PAR_S'
SELECT name FROM people WHERE city NOT LIKE '%S%'
SELECT 'a%b' LIKE 'a\%b', 'axb' LIKE 'a\%b', 'Ann' LIKE 'ann ', NULL LIKE 'a'
SELECT 0.1 + 0.2
SELECT 0.1 + 0.2 = 0.3
SELECT pay * 0.1 FROM people
SELECT name FROM people WHERE pay * 0.1 = 3.3
SELECT name, pay * 1.1 AS more FROM people ORDER BY pay * 1.1, id
SELECT SUM(pay * 0.1) FROM people
SELECT COUNT(DISTINCT TRIM(city)) FROM people
SELECT LOCATE('b', 'abc'), POSITION('b' IN 'abc')
SELECT LOG(8), LOG(2, 8), LOG2(8), LOG10(100), LN(1)
SELECT EXP(0), SIGN(-2)
SELECT NULLIF(1, 1), IFNULL(NULL, 2), COALESCE(NULL, 3)
SELECT LENGTH('é'), CHAR_LENGTH('é')
SELECT CAST(age AS CHAR) FROM people
SELECT DATEDIFF('2024-03-01', '2024-02-01')
SELECT LAG(age) OVER (ORDER BY id) FROM people
SELECT SUM(pay) OVER (PARTITION BY city ORDER BY id) FROM people
SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(city, ' ') AS c FROM people) AS d
SELECT name FROM people ORDER
