-- The database of the sample rows: the tables of EHRSQL's eICU half with invented patients.
CREATE TABLE patient
(
    uniquepid VARCHAR(10) NOT NULL,
    patienthealthsystemstayid INT NOT NULL,
    patientunitstayid INT NOT NULL PRIMARY KEY,
    gender VARCHAR(25) NOT NULL,
    age VARCHAR(10) NOT NULL,
    ethnicity VARCHAR(50),
    hospitalid INT NOT NULL,
    wardid INT NOT NULL,
    admissionheight NUMERIC(10,2),
    admissionweight NUMERIC(10,2),
    dischargeweight NUMERIC(10,2),
    hospitaladmittime TIMESTAMP(0) NOT NULL,
    hospitaladmitsource VARCHAR(30) NOT NULL,
    unitadmittime TIMESTAMP(0) NOT NULL,
    unitdischargetime TIMESTAMP(0),
    hospitaldischargetime TIMESTAMP(0),
    hospitaldischargestatus VARCHAR(10)
);
CREATE TABLE diagnosis
(
    diagnosisid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    diagnosisname VARCHAR(200) NOT NULL,
    diagnosistime TIMESTAMP(0) NOT NULL,
    icd9code VARCHAR(100),
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE treatment
(
    treatmentid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    treatmentname VARCHAR(200) NOT NULL,
    treatmenttime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE lab
(
    labid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    labname VARCHAR(256) NOT NULL,
    labresult NUMERIC(11,4) NOT NULL,
    labresulttime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE medication
(
    medicationid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    drugname VARCHAR(220) NOT NULL,
    dosage VARCHAR(60) NOT NULL,
    routeadmin VARCHAR(120) NOT NULL,
    drugstarttime TIMESTAMP(0),
    drugstoptime TIMESTAMP(0),
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE cost
(
    costid INT NOT NULL PRIMARY KEY,
    uniquepid VARCHAR(10) NOT NULL,
    patienthealthsystemstayid INT NOT NULL,
    eventtype VARCHAR(20) NOT NULL,
    eventid INT NOT NULL,
    chargetime TIMESTAMP(0) NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    FOREIGN KEY(patienthealthsystemstayid) REFERENCES patient(patienthealthsystemstayid)
);
CREATE TABLE allergy
(
    allergyid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    drugname VARCHAR(255),
    allergyname VARCHAR(255) NOT NULL,
    allergytime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE intakeoutput
(
    intakeoutputid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    cellpath VARCHAR(500) NOT NULL,
    celllabel VARCHAR(255) NOT NULL,
    cellvaluenumeric NUMERIC(12,4) NOT NULL,
    intakeoutputtime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE microlab
(
    microlabid INT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    culturesite VARCHAR(255) NOT NULL,
    organism VARCHAR(255) NOT NULL,
    culturetakentime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);
CREATE TABLE vitalperiodic
(
    vitalperiodicid BIGINT NOT NULL PRIMARY KEY,
    patientunitstayid INT NOT NULL,
    temperature NUMERIC(11,4),
    sao2 INT,
    heartrate INT,
    respiration INT,
    systemicsystolic INT,
    systemicdiastolic INT,
    systemicmean INT,
    observationtime TIMESTAMP(0) NOT NULL,
    FOREIGN KEY(patientunitstayid) REFERENCES patient(patientunitstayid)
);

INSERT INTO patient VALUES
('900-00001', 9000101, 9100101, 'female', '67', 'caucasian', 901, 11, 162, 71.5, 69.8, '2103-02-11 08:40:00', 'emergency department', '2103-02-11 11:05:00', '2103-02-15 16:20:00', '2103-02-18 13:00:00', 'alive'),
('900-00001', 9000102, 9100102, 'female', '69', 'caucasian', 901, 12, 162, 68.0, 68.4, '2105-06-03 02:15:00', 'emergency department', '2105-06-03 05:30:00', '2105-06-06 10:10:00', '2105-06-09 11:45:00', 'alive'),
('900-00002', 9000201, 9100201, 'male', '58', 'african american', 901, 11, 180, 96.2, 93.1, '2104-09-20 14:05:00', 'emergency department', '2104-09-20 18:30:00', '2104-09-24 09:00:00', '2104-09-27 15:30:00', 'alive'),
('900-00003', 9000301, 9100301, 'male', '81', 'caucasian', 902, 21, 174, 64.0, NULL, '2105-01-07 21:50:00', 'floor', '2105-01-08 01:10:00', '2105-01-12 04:35:00', '2105-01-12 04:35:00', 'expired'),
('900-00004', 9000401, 9100401, 'female', '34', 'hispanic', 902, 21, 158, 59.3, 58.9, '2105-03-15 19:25:00', 'emergency department', '2105-03-15 22:00:00', '2105-03-17 12:40:00', '2105-03-19 10:15:00', 'alive'),
('900-00005', 9000501, 9100501, 'male', '72', 'asian', 901, 12, 168, 77.7, 75.0, '2104-11-30 06:55:00', 'operating room', '2104-11-30 13:20:00', '2104-12-03 08:25:00', '2104-12-08 14:10:00', 'alive'),
('900-00006', 9000601, 9100601, 'female', '45', 'caucasian', 903, 31, 165, 83.4, 83.0, '2105-08-21 16:35:00', 'direct admit', '2105-08-21 17:15:00', '2105-08-24 18:00:00', '2105-08-26 09:30:00', 'alive'),
('900-00007', 9000701, 9100701, 'male', '63', NULL, 903, 31, 177, 88.8, NULL, '2105-12-28 10:20:00', 'emergency department', '2105-12-28 13:45:00', NULL, NULL, NULL);

INSERT INTO diagnosis VALUES
(1, 9100101, 'pneumonia - community-acquired', '2103-02-11 12:00:00', '486, j18.9'),
(2, 9100101, 'acute respiratory failure', '2103-02-11 12:05:00', '518.81, j96.00'),
(3, 9100102, 'acute copd exacerbation', '2105-06-03 06:00:00', '491.21, j44.1'),
(4, 9100102, 'acute respiratory failure', '2105-06-03 06:05:00', '518.81, j96.00'),
(5, 9100201, 'acute myocardial infarction - with st elevation', '2104-09-20 19:00:00', '410.71, i21.3'),
(6, 9100301, 'septic shock', '2105-01-08 01:40:00', '785.52, r65.21'),
(7, 9100301, 'acute renal failure', '2105-01-08 09:30:00', '584.9, n17.9'),
(8, 9100401, 'diabetic ketoacidosis', '2105-03-15 22:15:00', '250.13, e10.1'),
(9, 9100501, 's/p coronary artery bypass graft', '2104-11-30 13:30:00', NULL),
(10, 9100601, 'septic shock', '2105-08-21 18:00:00', '785.52, r65.21'),
(11, 9100601, 'urinary tract infection', '2105-08-21 18:10:00', '599.0, n39.0'),
(12, 9100701, 'acute respiratory failure', '2105-12-28 14:10:00', '518.81, j96.00');

INSERT INTO treatment VALUES
(1, 9100101, 'non-invasive ventilation', '2103-02-11 12:30:00'),
(2, 9100102, 'non-invasive ventilation', '2105-06-03 06:20:00'),
(3, 9100201, 'cardiac angiography', '2104-09-20 15:10:00'),
(4, 9100301, 'mechanical ventilation', '2105-01-08 02:00:00'),
(5, 9100301, 'vasopressors', '2105-01-08 02:10:00'),
(6, 9100301, 'hemodialysis', '2105-01-10 11:00:00'),
(7, 9100501, 'mechanical ventilation', '2104-11-30 13:25:00'),
(8, 9100601, 'vasopressors', '2105-08-21 18:20:00'),
(9, 9100701, 'mechanical ventilation', '2105-12-28 14:00:00');

INSERT INTO lab VALUES
(1, 9100101, 'lactate', 2.4, '2103-02-11 11:40:00'),
(2, 9100101, 'wbc x 1000', 16.8, '2103-02-11 11:40:00'),
(3, 9100101, 'wbc x 1000', 10.1, '2103-02-14 06:00:00'),
(4, 9100102, 'paco2', 68, '2105-06-03 05:50:00'),
(5, 9100102, 'paco2', 49, '2105-06-04 05:30:00'),
(6, 9100201, 'troponin - i', 14.2, '2104-09-20 19:10:00'),
(7, 9100201, 'troponin - i', 31.7, '2104-09-21 02:00:00'),
(8, 9100201, 'creatinine', 1.1, '2104-09-21 06:00:00'),
(9, 9100301, 'lactate', 6.9, '2105-01-08 01:30:00'),
(10, 9100301, 'creatinine', 1.9, '2105-01-08 01:30:00'),
(11, 9100301, 'creatinine', 3.8, '2105-01-09 05:40:00'),
(12, 9100301, 'creatinine', 4.6, '2105-01-10 05:30:00'),
(13, 9100301, 'lactate', 9.3, '2105-01-11 20:00:00'),
(14, 9100401, 'glucose', 512, '2105-03-15 20:00:00'),
(15, 9100401, 'glucose', 188, '2105-03-16 08:00:00'),
(16, 9100401, 'potassium', 3.2, '2105-03-16 02:00:00'),
(17, 9100501, 'hgb', 8.4, '2104-11-30 14:00:00'),
(18, 9100501, 'hgb', 9.6, '2104-12-02 06:10:00'),
(19, 9100601, 'lactate', 4.1, '2105-08-21 17:40:00'),
(20, 9100601, 'lactate', 1.6, '2105-08-22 17:30:00'),
(21, 9100701, 'paco2', 74, '2105-12-28 13:55:00'),
(22, 9100701, 'creatinine', 1.3, '2105-12-29 06:05:00');

INSERT INTO medication VALUES
(1, 9100101, 'ceftriaxone', '2 g', 'iv', '2103-02-11 12:15:00', '2103-02-16 12:00:00'),
(2, 9100101, 'azithromycin', '500 mg', 'po', '2103-02-11 12:30:00', '2103-02-14 12:00:00'),
(3, 9100102, 'methylprednisolone', '40 mg', 'iv', '2105-06-03 06:15:00', '2105-06-04 18:00:00'),
(4, 9100102, 'prednisone', '40 mg', 'po', '2105-06-05 08:00:00', '2105-06-09 08:00:00'),
(5, 9100201, 'aspirin', '325 mg', 'po', '2104-09-20 14:30:00', '2104-09-20 14:30:00'),
(6, 9100201, 'aspirin', '81 mg', 'po', '2104-09-21 08:00:00', '2104-09-27 08:00:00'),
(7, 9100201, 'heparin', '5000 units', 'iv', '2104-09-20 14:40:00', '2104-09-21 10:00:00'),
(8, 9100301, 'norepinephrine', '8 mcg/min', 'iv', '2105-01-08 02:10:00', '2105-01-12 04:00:00'),
(9, 9100301, 'piperacillin-tazobactam', '4.5 g', 'iv', '2105-01-08 02:20:00', '2105-01-12 04:00:00'),
(10, 9100401, 'insulin regular', '6 units/hr', 'iv', '2105-03-15 20:30:00', '2105-03-16 12:00:00'),
(11, 9100401, 'potassium chloride', '20 meq', 'iv', '2105-03-16 02:30:00', '2105-03-16 06:00:00'),
(12, 9100501, 'aspirin', '81 mg', 'po', '2104-12-01 08:00:00', '2104-12-08 08:00:00'),
(13, 9100501, 'metoprolol', '25 mg', 'po', '2104-12-01 09:00:00', '2104-12-08 09:00:00'),
(14, 9100601, 'norepinephrine', '5 mcg/min', 'iv', '2105-08-21 18:20:00', '2105-08-22 20:00:00'),
(15, 9100601, 'ceftriaxone', '1 g', 'iv', '2105-08-21 18:30:00', '2105-08-25 18:00:00'),
(16, 9100701, 'propofol', '20 mcg/kg/min', 'iv', '2105-12-28 14:05:00', NULL);

INSERT INTO cost VALUES
(1, '900-00001', 9000101, 'lab', 1, '2103-02-11 11:40:00', 14.85),
(2, '900-00001', 9000101, 'medication', 1, '2103-02-11 12:15:00', 22.4),
(3, '900-00001', 9000102, 'treatment', 2, '2105-06-03 06:20:00', 310),
(4, '900-00001', 9000102, 'diagnosis', 3, '2105-06-03 06:00:00', 48.5),
(5, '900-00002', 9000201, 'treatment', 3, '2104-09-20 15:10:00', 2890),
(6, '900-00002', 9000201, 'lab', 6, '2104-09-20 19:10:00', 37.25),
(7, '900-00003', 9000301, 'treatment', 6, '2105-01-10 11:00:00', 640),
(8, '900-00003', 9000301, 'lab', 9, '2105-01-08 01:30:00', 14.85),
(9, '900-00004', 9000401, 'lab', 14, '2105-03-15 20:00:00', 6.1),
(10, '900-00005', 9000501, 'treatment', 7, '2104-11-30 13:25:00', 1150),
(11, '900-00006', 9000601, 'lab', 19, '2105-08-21 17:40:00', 14.85),
(12, '900-00007', 9000701, 'treatment', 9, '2105-12-28 14:00:00', 1150);

INSERT INTO allergy VALUES
(1, 9100101, 'penicillin v', 'penicillins', '2103-02-11 11:20:00'),
(2, 9100401, NULL, 'latex', '2105-03-15 22:10:00'),
(3, 9100501, 'codeine', 'codeine', '2104-11-30 13:40:00'),
(4, 9100501, NULL, 'shellfish', '2104-11-30 13:40:00');

INSERT INTO intakeoutput VALUES
(1, 9100301, 'flowsheet|intake (ml)|crystalloids (ml)', 'crystalloids (ml)', 1000, '2105-01-08 03:00:00'),
(2, 9100301, 'flowsheet|intake (ml)|crystalloids (ml)', 'crystalloids (ml)', 750, '2105-01-08 06:00:00'),
(3, 9100301, 'flowsheet|output (ml)|urine', 'urine', 90, '2105-01-08 08:00:00'),
(4, 9100401, 'flowsheet|intake (ml)|crystalloids (ml)', 'crystalloids (ml)', 1500, '2105-03-15 23:30:00'),
(5, 9100401, 'flowsheet|output (ml)|urine', 'urine', 820, '2105-03-16 06:00:00'),
(6, 9100601, 'flowsheet|intake (ml)|crystalloids (ml)', 'crystalloids (ml)', 2000, '2105-08-21 20:00:00'),
(7, 9100601, 'flowsheet|output (ml)|urine', 'urine', 310, '2105-08-22 02:00:00'),
(8, 9100701, 'flowsheet|output (ml)|urine', 'urine', 450, '2105-12-31 06:00:00');

INSERT INTO microlab VALUES
(1, 9100101, 'sputum, expectorated', 'streptococcus pneumoniae', '2103-02-11 12:10:00'),
(2, 9100301, 'blood, venipuncture', 'escherichia coli', '2105-01-08 01:50:00'),
(3, 9100301, 'urine, catheter specimen', 'escherichia coli', '2105-01-08 02:00:00'),
(4, 9100601, 'urine, voided specimen', 'klebsiella pneumoniae', '2105-08-21 18:15:00'),
(5, 9100601, 'blood, venipuncture', 'no growth', '2105-08-21 18:20:00');

INSERT INTO vitalperiodic VALUES
(1, 9100101, 38.6, 88, 112, 30, 104, 58, 73, '2103-02-11 11:10:00'),
(2, 9100101, 37.1, 95, 84, 18, 122, 66, 85, '2103-02-15 08:00:00'),
(3, 9100102, 36.9, 86, 118, 32, 148, 80, 103, '2105-06-03 05:35:00'),
(4, 9100102, 36.8, 92, 90, 20, 134, 72, 93, '2105-06-05 09:00:00'),
(5, 9100201, 36.7, 97, 96, 18, 138, 82, 101, '2104-09-20 18:35:00'),
(6, 9100201, 36.6, 98, 71, 14, 118, 70, 86, '2104-09-23 08:00:00'),
(7, 9100301, 39.2, 91, 128, 28, 78, 40, 53, '2105-01-08 01:15:00'),
(8, 9100301, 37.9, 94, 116, 24, 92, 48, 63, '2105-01-10 08:00:00'),
(9, 9100401, 36.4, 99, 121, 34, 102, 60, 74, '2105-03-15 22:05:00'),
(10, 9100501, 36.1, 100, 88, 12, 110, 62, 78, '2104-11-30 13:30:00'),
(11, 9100601, 38.8, 96, 119, 24, 84, 44, 57, '2105-08-21 17:20:00'),
(12, 9100601, 37.0, 98, 82, 16, 116, 68, 84, '2105-08-24 12:00:00'),
(13, 9100701, 37.2, 84, 124, 35, 156, 90, 112, '2105-12-28 13:50:00'),
(14, 9100701, 37.0, 96, 92, 16, 128, 74, 92, '2105-12-31 08:00:00');
