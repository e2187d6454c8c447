CREATE TABLE backstory_layout (number integer NOT NULL);

CREATE TABLE backstory_rows (
    -- Empty for the graph. Facts and annotations have the number of a directory.
    directory text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    owner text NOT NULL DEFAULT current_user,
    PRIMARY KEY (directory, key)
);

-- Rows that no run owns: texts, directories, versions, inodes and counters.
CREATE FUNCTION backstory_is_common(directory text, key bytea) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN directory = '' AND get_byte(key, 0) IN (0, 3, 4, 5, 6, 7, 22, 23);

ALTER TABLE backstory_rows ENABLE ROW LEVEL SECURITY;

CREATE POLICY reads_all ON backstory_rows FOR SELECT USING (true);

CREATE POLICY appends_as_itself ON backstory_rows FOR INSERT WITH CHECK (owner = current_user);

CREATE POLICY changes_its_own ON backstory_rows FOR UPDATE
    USING (owner = current_user OR backstory_is_common(directory, key));

CREATE POLICY removes_its_own ON backstory_rows FOR DELETE
    USING (owner = current_user OR backstory_is_common(directory, key));
