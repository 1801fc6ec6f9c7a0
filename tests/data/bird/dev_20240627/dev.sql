SELECT T1.`Free Meal Count (K-12)` / T2.Enrolled FROM frpm AS T1 INNER JOIN schools AS T2 ON T1.CDSCode = T2.CDSCode WHERE T2.County = 'Alameda' ORDER BY 1 DESC LIMIT 1	california_schools
SELECT `School Name` FROM schools WHERE Enrolled IS NULL	california_schools
SELECT T2.County FROM frpm AS T1 INNER JOIN schools AS T2 ON T1.CDSCode = T2.CDSCode GROUP BY T2.County HAVING SUM(T1.`Free Meal Count (K-12)`) > 200	california_schools
