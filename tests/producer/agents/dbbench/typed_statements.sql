SELECT * FROM products
SELECT name, price FROM products ORDER BY price
SELECT price FROM products WHERE price = 300
SELECT price FROM products WHERE price = '300.00'
SELECT price * 1.1 FROM products
SELECT price / 3 FROM products
SELECT price - 0.005 FROM products
SELECT price + quantity FROM products
SELECT ROUND(price) FROM products
SELECT ROUND(price, 1) FROM products
SELECT ROUND(-2.5), ROUND(2.5), ROUND(-0.5), ROUND(1.005, 2)
SELECT SUM(price), AVG(price), MIN(price), MAX(price), COUNT(price) FROM products
SELECT SUM(quantity), AVG(quantity) FROM products
SELECT SUM(pieces), AVG(pieces), pieces FROM products GROUP BY pieces
SELECT pieces FROM products ORDER BY pieces
SELECT weight FROM products
SELECT SUM(weight) FROM products
SELECT f FROM products
SELECT CONCAT(name, ':', price) FROM products
SELECT CONCAT(sold, '/', day) FROM products
SELECT CAST(price AS CHAR) FROM products
SELECT CONCAT_WS(',', name, price, weight) FROM products
SELECT LENGTH(price) FROM products
SELECT name FROM products WHERE price LIKE '%.99'
SELECT name FROM products WHERE sold > '2024-01-01'
SELECT name FROM products WHERE day = '2024-01-31'
SELECT name FROM products WHERE day > '2024-1-5'
SELECT name FROM products WHERE day = '2024-01-31 00:00:00'
SELECT name FROM products WHERE sold BETWEEN '2023-01-01' AND '2024-01-31'
SELECT name FROM products WHERE sold = '2023-12-01'
SELECT name FROM products WHERE day = 20240131
SELECT MAX(sold), MIN(day) FROM products
SELECT day, COUNT(*) FROM products GROUP BY day ORDER BY day DESC
SELECT name FROM products WHERE at < '10:00:00'
SELECT name FROM products WHERE name IS NULL
SELECT name FROM products WHERE quantity IS NOT NULL ORDER BY quantity DESC LIMIT 2
SELECT COALESCE(quantity, 0), COALESCE(price, 0) FROM products
SELECT name FROM products WHERE name = 'chair'
SELECT name FROM products WHERE code = 'AB'
SELECT code, LENGTH(code) FROM products
SELECT name FROM products WHERE name LIKE 'chair_'
SELECT DATEDIFF(sold, day) FROM products
SELECT price FROM products WHERE price IN (300, 999.99)
SELECT price FROM products WHERE price IN ('300', '999.99')
SELECT DISTINCT price FROM products ORDER BY 1
SELECT GREATEST(price, quantity) FROM products
SELECT IF(price > 100, price, quantity) FROM products
SELECT CASE WHEN price > 100 THEN price ELSE 0 END FROM products
SELECT -price, ABS(price), SIGN(price) FROM products
SELECT price % 7 FROM products
SELECT price DIV 7 FROM products
SELECT FLOOR(price), CEIL(price) FROM products
SELECT AVG(price) AS a FROM products HAVING a > 1
SELECT SUM(price * quantity) FROM products
SELECT SUM(price) / COUNT(*) FROM products
SELECT tiny + 1 FROM products
SELECT weight * 2 FROM products WHERE weight = 1.5
SELECT name FROM products WHERE weight > price
INSERT INTO products (name, price) VALUES ('Pad', 1.005)
INSERT INTO products (name, price) VALUES ('Pad', -1.005)
INSERT INTO products (name, price) VALUES ('Pad', '12.345')
INSERT INTO products (name, price) VALUES ('Pad', 'abc')
INSERT INTO products (name, price) VALUES ('Pad', 99999999.999)
INSERT INTO products (name, price) VALUES ('Pad', 99999999.99)
INSERT INTO products (name, price) VALUES ('Pad', 100000000)
INSERT INTO products (name, quantity) VALUES ('Pad', 2147483648)
INSERT INTO products (name, quantity) VALUES ('Pad', 2.5), ('Pad', -2.5), ('Pad', '7.5')
INSERT INTO products (name, quantity) VALUES ('Pad', '')
INSERT INTO products (name, tiny) VALUES ('Pad', 128)
INSERT INTO products (name, tiny) VALUES ('Pad', TRUE)
INSERT INTO products (name, pieces) VALUES ('Pad', 2.5)
INSERT INTO products (name, weight) VALUES ('Pad', 0.1)
INSERT INTO products (name, weight) VALUES ('Pad', 1e15), ('b', 1e14), ('c', 123456789012345678), ('d', 0.00001), ('e', 1e-4), ('f', 1e300), ('g', 0.1e0 + 0.2e0), ('h', -0.0)
INSERT INTO products (name, weight) VALUES ('Pad', '1.5'), ('Pad', 'x')
INSERT INTO products (name, f) VALUES ('Pad', 0.1), ('b', 3.14159265), ('c', 1234567.5), ('d', 1e-5)
INSERT INTO products (name) VALUES ('123456789012345678901234567890123456789012345678901')
INSERT INTO products (name) VALUES ('12345678901234567890123456789012345678901234567890   ')
INSERT INTO products (name, code) VALUES ('Pad', 'ab  ')
INSERT INTO products (name, code) VALUES ('Pad', 'abcd  ')
INSERT INTO products (name, code) VALUES ('Pad', 'abcde')
INSERT INTO products (name, sold) VALUES ('Pad', '2024-05-06 07:08:09')
INSERT INTO products (name, sold) VALUES ('Pad', '2024-05-06')
INSERT INTO products (name, sold) VALUES ('Pad', '2024-05-06 07:08')
INSERT INTO products (name, sold) VALUES ('Pad', '2024-05-06T07:08:09')
SELECT products.* FROM products WHERE f > 1
SELECT f * 2 FROM (SELECT f FROM products) AS s
SELECT name FROM products WHERE f IN (SELECT f FROM products WHERE f > 1)
SELECT f FROM products UNION SELECT weight FROM products
SELECT LOCATE('.', price) FROM products
INSERT INTO products (name, sold) VALUES ('Pad', '2024-13-06 07:08:09')
INSERT INTO products (name, sold) VALUES ('Pad', 'yesterday')
INSERT INTO products (name, day) VALUES ('Pad', '2024-02-30')
INSERT INTO products (name, day) VALUES ('Pad', '2023-02-29')
INSERT INTO products (name, day) VALUES ('Pad', '2024-5-6')
INSERT INTO products (name, day) VALUES ('Pad', 20240506)
INSERT INTO products (name, day) VALUES ('Pad', '2024/05/06')
INSERT INTO products (name, day) VALUES ('Pad', '2024-05-06 10:00:00')
INSERT INTO products (name, day) VALUES ('Pad', '')
INSERT INTO products (name, day) VALUES ('Pad', '0000-00-00')
INSERT INTO products (name, at) VALUES ('Pad', '9:05:00')
INSERT INTO products (name, at) VALUES ('Pad', '25:00:00')
INSERT INTO products (name, at) VALUES ('Pad', '23:61:00')
INSERT INTO products VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
UPDATE products SET price = price * 1.1
UPDATE products SET price = price / 3
UPDATE products SET price = price - 0.005 WHERE name = 'Desk'
UPDATE products SET price = -price
UPDATE products SET price = NULL WHERE price < 0
UPDATE products SET price = ROUND(price, 0)
UPDATE products SET quantity = quantity / 2
UPDATE products SET quantity = price
UPDATE products SET name = CONCAT(name, price)
UPDATE products SET name = price
UPDATE products SET name = sold
UPDATE products SET sold = '2025-01-01 00:00:00' WHERE day > '2024-01-01'
UPDATE products SET sold = day
UPDATE products SET day = sold
UPDATE products SET day = '2025-01-01', price = price + 1 WHERE price >= 300.00
UPDATE products SET weight = weight / 3
UPDATE products SET weight = price
UPDATE products SET price = weight WHERE name = 'Laptop'
UPDATE products SET pieces = pieces + 0.5
UPDATE products SET name = UPPER(name) WHERE name = 'laptop'
DELETE FROM products WHERE price < 0
DELETE FROM products WHERE price = 999.99
DELETE FROM products WHERE sold < '2024-01-01 00:00:00'
DELETE FROM products WHERE quantity IS NULL OR quantity < 0
DELETE FROM products ORDER BY price DESC LIMIT 1
DELETE FROM products ORDER BY sold LIMIT 2
SELECT name, f FROM products ORDER BY f DESC, name
SELECT f AS g FROM products ORDER BY g
SELECT name, f FROM products WHERE f < 9000000 ORDER BY f DESC LIMIT 1
SELECT f FROM products WHERE f < 1e6 UNION SELECT f FROM products WHERE f < 1
INSERT INTO products (name, sold) VALUES ('zero', '0000-00-00')
INSERT INTO products (name, day) VALUES ('zero', '0000-00-00')
INSERT INTO products (name, sold) VALUES ('zero', '0000-00-00 00:00:00')
INSERT INTO products (name, day) VALUES ('late', '2024-05-06 25:00:00')
INSERT INTO products (name, f) VALUES ('large', 1e39)
SELECT name FROM products WHERE weight * 2 LIKE '3'
